"""What should stand behind ELMo's vectors for names? F1 on the dev set of WNUT-17.

    python benchmarks/quality/entities.py OUT --data DATA [--arms …] [--seeds …] [--steps …]

The recipe of `elmo add` for NER is compared with a beam, a BiLSTM encoder and other learning rates;
each is scored after 1,000 and 2,000 steps, with the last parameters and with their averages. The
rest is as in `downstream.py`.
"""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

from arms import ARMS, MIX, make_nlp
from downstream import DROPOUT, train_for
from results import Results, fingerprint, make_parser
from spacy.util import fix_random_seed
from tasks import TASKS, batches, examples_of
from thinc.api import Adam

PART = "entities"
RECIPE = ARMS[MIX]
LSTM = {"@architectures": "spacy.TorchBiLSTMEncoder.v1", "width": 96, "depth": 1, "dropout": 0.0}
TRIED = {
    "recipe": RECIPE,
    "beam": RECIPE,
    "BiLSTM": RECIPE._replace(tok2vec={**RECIPE.tok2vec, "encode": LSTM}),
    "rate 0.0003": RECIPE._replace(learn_rate=0.0003),
    "rate 0.003": RECIPE._replace(learn_rate=0.003),
}


def measure(name: str, seed: int, data: Path, all_steps: list[int]) -> dict[str, float]:
    """F1 by steps and parameters."""
    fix_random_seed(seed)
    arm, task = TRIED[name], TASKS["ner"]
    if name == "beam":
        task = task._replace(factory="beam_ner")
    nlp = make_nlp(task, arm, {})
    examples = examples_of(nlp, task, data, "train")
    nlp.initialize(lambda: examples)
    optimizer = Adam(arm.learn_rate, L2=0.01, grad_clip=1.0, L2_is_weight_decay=True)
    stream, found, done = batches(examples, task.batch_words, seed), {}, 0
    for steps in all_steps:
        train_for(nlp, optimizer, stream, DROPOUT, steps - done)
        done = steps
        for kind, parameters in (("last", {}), ("averages", optimizer.averages)):
            with nlp.use_params(parameters):
                scores = nlp.evaluate(examples_of(nlp, task, data, "dev"))
            found[f"{steps} steps, {kind}"] = 100 * scores["ents_f"]
    return found


def main() -> None:
    parser = make_parser(__doc__.split("\n")[0], seeds=7)
    parser.add_argument("--arms", nargs="+", choices=TRIED, default=[*TRIED])
    parser.add_argument("--steps", nargs="+", type=int, default=[1000, 2000])
    arguments = parser.parse_args()
    results, weights = Results(arguments.out), fingerprint("en_sm")
    for seed, name in itertools.product(arguments.seeds, arguments.arms):
        function = partial(measure, name, seed, arguments.data, arguments.steps)
        results.get(PART, {"arm": name, "seed": seed}, weights, function)
    results.print_means(PART)


if __name__ == "__main__":
    main()
