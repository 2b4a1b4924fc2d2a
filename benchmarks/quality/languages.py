"""What an hour of one core gains a tagger, a parser and NER in other languages.

    python benchmarks/quality/languages.py OUT --data DATA [--langs de pt] [--seeds 0 1 2]
        [--minutes 60]
    python benchmarks/quality/languages.py OUT --own FOLDER --langs es --arms nothing ELMo

The steps are those of the project's workflow `language`: its scripts read the data, pretrain the
biLM and make the configs of the tasks, which have the same sentences, seed and steps in each arm:

    nothing          `spacy init config`
    static floret    … with floret vectors of the same text (`pip install floret`)
    spacy pretrain   … whose tok2vec `spacy pretrain` has trained on it, for as long as the biLM
    ELMo             … after `elmo add`

A seed is that of the tasks. The first three arms have the text that the project has for a language;
ELMo also has the novels alone, modern text alone, and both (`--texts`), or the first words of one
of these (`--words`), for a curve. Of languages that DATA lacks, FOLDER has LANG/text.txt and
LANG/conllu, as `--vars.text` and `--vars.conllu` take them. Results are lines of
OUT/results.jsonl: what is there is not computed again, a run that was stopped is continued, and
several at once may share the work by language. An OUT has one `--size`. The biLMs stay in
OUT/LANG-TEXT-MINUTES.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pretrained
from results import Results
from spacy.cli.evaluate import evaluate
from spacy.cli.train import train
from spacy.language import DEFAULT_CONFIG_PRETRAIN_PATH
from spacy.training.initialize import convert_vectors
from spacy.training.pretrain import pretrain
from spacy.util import load_config
from tables import ELMO, LANGS, LANGUAGE_ARMS, own_text
from thinc.api import Config

from spacy_elmo.pretraining.log import LOG, read_log
from spacy_elmo.text.files import paragraphs_in
from spacy_elmo.text.readers import BY_RULES, blank
from spacy_elmo.text.shards import Shards

PROJECT = Path(__file__).parents[2] / "project"
sys.path.insert(0, str(PROJECT / "scripts"))
from datasets import TASKS, present  # noqa: E402
from scores import MEASURES  # noqa: E402
from sizes import Size, find_size  # noqa: E402
from train import for_few, make_added  # noqa: E402

NAMES = "tagger,parser,ner"
PART = "languages"  # of the results
NOTHING, STATIC, PRETRAINED, _ = LANGUAGE_ARMS
TOKENIZERS = {"ja": "spacy.ja.JapaneseTokenizer"}  # where no spaces stand between words
TIMED = PRETRAINED, ELMO  # which depend on the minutes
TEXTS = {"novels": ["novels"], "modern": ["modern"], "both": ["novels", "modern"]}
FLORET = {
    "model": "cbow", "mode": "floret", "hashCount": 2, "bucket": 50_000, "minn": 4, "maxn": 5,
    "minCount": 5, "dim": 256, "epoch": 5, "thread": 1, "verbose": 0,
}  # fmt: skip

Unit = dict[str, Any]


def units(args: argparse.Namespace) -> Iterator[tuple[Unit, list[str]]]:
    """What is measured of a biLM and a seed, and the arms beside it."""
    for seed, lang in itertools.product(args.seeds, args.langs):
        texts = [own_text(lang)] if lang == "ko" or args.own else args.texts or TEXTS
        for text, words in itertools.product(texts, args.words):
            unit = {"lang": lang, "text": text, "seed": seed, "minutes": args.minutes}
            if words:
                unit["words"] = words
            is_own = text == own_text(lang) and not words
            yield unit, [arm for arm in args.arms if is_own or arm == ELMO]


def run(args: argparse.Namespace) -> None:
    results = Results(args.out / "results.jsonl")
    for unit, arms in units(args):
        parts = [str(unit[key]) for key in ("lang", "text", "words") if key in unit]
        name = "-".join([*parts, f"{args.minutes:g}"])
        folder = (args.out / name).resolve()
        for arm in arms:
            measured = {**unit, "sentences": args.sentences, "steps": args.steps, "arm": arm}
            if arm not in TIMED:
                del measured["minutes"]
            results.get(PART, measured, None, partial(measure, arm, unit, folder, args))


def measure(arm: str, unit: Unit, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Scores in percent, the minutes of preparation and of the tasks, and facts of a biLM."""
    start = core_seconds()
    read_data(unit, folder, args)
    files = prepare(arm, unit, folder, args)
    prepared = core_seconds()
    return {
        "scores": dict(train_tasks(arm, files, unit, folder, args)),
        "minutes": (prepared - start) / 60,
        "task_minutes": (core_seconds() - prepared) / 60,
        **(facts(Path(files["weights"])) if arm == ELMO else {}),
    }


def core_seconds() -> float:
    """Processor time of this process and of those that it has run."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def step(script: str, folder: Path, **options: object) -> None:
    """Run a script of the project as its commands do."""
    command = [sys.executable, f"scripts/{script}.py", str(folder)]
    command += [part for key, value in options.items() for part in (f"--{key}", str(value))]
    subprocess.run(command, cwd=PROJECT, check=True)


def read_data(unit: Unit, folder: Path, args: argparse.Namespace) -> None:
    """The data of a unit, once for a number of sentences."""
    wanted, note = f"{args.sentences} sentences\n", folder / "read.txt"
    if note.exists() and note.read_text(encoding="utf-8") == wanted:
        return
    lang, files = unit["lang"], []
    given: dict[str, object] = {"local": args.data.resolve()} if args.data else {}
    if args.own:
        files = [args.own.resolve() / lang / "text.txt"]
        given = {"conllu": args.own.resolve() / lang / "conllu"}
    elif lang != "ko" and (unit["text"] != own_text(lang) or "words" in unit):
        for name in TEXTS[unit["text"]]:
            files.append(args.data.resolve() / "languages" / lang / f"{name}.train.txt.xz")
    if "words" in unit:
        files = [first_words(files, unit["words"], folder)]
    step(
        "language_data", folder, lang=lang, size=args.size, text=",".join(map(str, files)),
        sentences=args.sentences, tasks=NAMES, tokenizer=tokenizer_of(lang), **given,
    )  # fmt: skip
    note.write_text(wanted, encoding="utf-8")


def first_words(files: Sequence[Path], n_words: int, folder: Path) -> Path:
    """A file of the first words of some texts."""
    folder.mkdir(parents=True, exist_ok=True)
    left, path = n_words, folder / "first.txt"
    with path.open("w", encoding="utf-8") as out:
        for paragraph in itertools.chain.from_iterable(map(paragraphs_in, files)):
            if left <= 0:
                break
            left -= len(paragraph.split())
            out.write(paragraph + "\n")
    return path


def prepare(arm: str, unit: Unit, folder: Path, args: argparse.Namespace) -> dict[str, str]:
    """What an arm starts from, made from the text of the unit, once; as settings of a config."""
    shards = folder / "shards" / "train"
    if arm in (STATIC, PRETRAINED) and not shards.exists():
        text, lang = folder / "text" / "train.txt", unit["lang"]
        elmo = [sys.executable, "-m", "spacy", "elmo", "tokenize", text, shards, "--lang", lang]
        subprocess.run([*map(str, elmo), "--tokenizer", tokenizer_of(lang)], check=True)
    if arm == STATIC:
        if not (folder / "vectors").exists():
            train_floret(shards, folder, unit["lang"])
        return {"vectors": str(folder / "vectors")}
    if arm == PRETRAINED:
        weights = folder / "tok2vec" / "model-last.bin"
        if not weights.exists():
            lasts = {"minutes": args.tok2vec_minutes or args.minutes, "seed": 0}
            train_tok2vec(shards, weights.parent, {**unit, **lasts})
        return {"init_tok2vec": str(weights)}
    if arm == ELMO:
        if not (folder / "bilm.txt").exists():
            step(
                "bilm", folder, bilm="pretrain", lang=unit["lang"], size=args.size,
                minutes=unit["minutes"], steps=args.bilm_steps, seed=0,
                tokenizer=tokenizer_of(unit["lang"]),
            )  # fmt: skip
        return {"weights": (folder / "bilm.txt").read_text(encoding="utf-8").strip()}
    return {}


def tokenizer_of(lang: str) -> str:
    """The tokenizer of the text. Tasks have the words of the treebanks."""
    return TOKENIZERS.get(lang, BY_RULES)


def train_floret(shards: Path, folder: Path, lang: str) -> None:
    """Static vectors of the text in floret's hashed n-grams; the same for each seed."""
    import floret

    text, vectors = folder / "words.txt", folder / "words.floret"
    lines = (" ".join(sentence) + "\n" for sentence in Shards(shards).sentences())
    with text.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    floret.train_unsupervised(str(text), **FLORET).save_floret_vectors(str(vectors))
    nlp = blank(lang, tokenizer_of(lang))  # which `spacy init vectors` cannot be told
    convert_vectors(nlp, vectors, truncate=0, prune=-1, mode="floret")
    nlp.to_disk(folder / "vectors")
    text.unlink(), vectors.unlink()


def train_tok2vec(shards: Path, out: Path, unit: Unit) -> None:
    """`spacy pretrain`, for the unit's minutes of processor time."""
    config = make_config("tagger", NOTHING, {}, unit, Size())
    config = pretrained.until(config, [str(shards)], 60 * unit["minutes"])
    # spaCy writes model-last.bin after Ctrl-C, too.
    unfinished = out.with_name(f"{out.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    pretrain(config, unfinished)
    unfinished.rename(out)


def make_config(task: str, arm: str, files: dict[str, str], unit: Unit, limits: Size) -> Config:
    """The project's config of a task, for an arm."""
    config = make_added(task, "elmo" if arm == ELMO else "plain", limits, files.get("weights", ""))
    if arm == STATIC:
        config["components"]["tok2vec"]["model"]["embed"]["include_static_vectors"] = True
        config["initialize"]["vectors"] = files["vectors"]
    if arm == PRETRAINED and files:
        config["initialize"]["init_tok2vec"] = files["init_tok2vec"]
        config["pretraining"] = {"component": "tok2vec", "layer": ""}
        config = load_config(DEFAULT_CONFIG_PRETRAIN_PATH).merge(config)
    config["system"]["seed"] = unit["seed"]
    config["nlp"] |= {"lang": unit["lang"], "tokenizer": {"@tokenizers": BY_RULES}}
    return config


def train_tasks(
    arm: str, files: dict[str, str], unit: Unit, folder: Path, args: argparse.Namespace
) -> Iterator[tuple[str, float]]:
    """Train and test each task: its score in percent."""
    for task in present(folder, NAMES):
        corpus = folder / "corpus" / TASKS[task]
        limits = for_few(find_size(args.size), corpus / "train.spacy")
        steps = min(args.steps, limits.steps)
        limits = limits._replace(steps=steps, eval_every=steps)
        config = make_config(task, arm, files, unit, limits)
        for split in ("train", "dev"):
            config["paths"][split] = str(corpus / f"{split}.spacy")
        out = folder / "models" / f"{task}-{arm}-{unit['seed']}".replace(" ", "-")
        out.mkdir(parents=True, exist_ok=True)
        config.to_disk(out / "config.cfg")
        train(out / "config.cfg", out)
        # After the last step: nothing is selected.
        scores = evaluate(str(out / "model-last"), corpus / "test.spacy", gold_preproc=True)
        yield task, 100 * (scores[MEASURES[task][0]] or 0.0)


def facts(weights: Path) -> dict[str, Any]:
    """Of a pretraining: its steps, the perplexity of the held-out text, the size of the biLM."""
    entries = read_log(weights.parent / LOG)
    [best] = [entry["mean"] for entry in entries if entry.get("model") == "model-best"]
    size = (weights / "weights.safetensors").stat().st_size
    return {"bilm_steps": max(e["step"] for e in entries), "perplexity": best, "mb": size / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="a folder, to whose results.jsonl results are added")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, help="see benchmarks/README.md")
    source.add_argument("--own", type=Path, help="a folder with LANG/text.txt and LANG/conllu")
    parser.add_argument("--langs", nargs="+", choices=LANGS, help="(default: all of the folder)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="of the tasks")
    parser.add_argument("--arms", nargs="+", choices=LANGUAGE_ARMS, default=LANGUAGE_ARMS)
    parser.add_argument(
        "--tok2vec-minutes",
        type=float,
        help="of `spacy pretrain` (default: --minutes); where --bilm-steps take longer",
    )
    parser.add_argument("--texts", nargs="+", choices=TEXTS, help="that ELMo reads (default: all)")
    parser.add_argument("--words", nargs="+", type=int, default=[0], help="of each text; 0: all")
    parser.add_argument(
        "--minutes", type=float, default=60, help="of one core for each pretraining"
    )
    parser.add_argument(
        "--bilm-steps",
        type=int,
        default=0,
        help="of each pretraining (default: as many as take --minutes here)",
    )
    parser.add_argument("--sentences", type=int, default=400, help="to learn from")
    parser.add_argument("--steps", type=int, default=1000, help="of each task")
    parser.add_argument("--size", default="full", help="of the project")
    args = parser.parse_args()
    folder = args.own or args.data / "languages"
    is_there = {lang: (folder / lang).exists() or (lang == "ko" and args.data) for lang in LANGS}
    args.langs = args.langs or list(filter(is_there.get, LANGS))
    os.environ["OMP_NUM_THREADS"] = "1"
    run(args)


if __name__ == "__main__":
    main()
