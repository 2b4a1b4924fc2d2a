"""The biLM of a run: embedded, adapted to the text, pretrained on it, or another one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import typer
from sizes import find_size
from text_facts import FACTS
from wasabi import msg

from spacy_elmo.bilm.torch_precision import has_fast_bfloat16
from spacy_elmo.cli.options import report_errors
from spacy_elmo.pretraining.checkpoint import CHECKPOINT
from spacy_elmo.text.shards import Shards

WEIGHTS = Path("weights")  # that come with this project, by language; en_sm comes with spacy-elmo
MOST_EPOCHS = 10  # however many minutes there are for a small text
EVAL_WORDS = 20_000  # held out, where minutes count
MOST_STEPS = 10_000_000  # which no minutes reach


@report_errors("Cannot prepare the biLM")
def main(
    run: Path,
    bilm: str = "auto",
    config: str = "auto",
    lang: str = "en",
    size: str = "full",
    tokenizer: str = "spacy.Tokenizer.v1",
    steps: int = 0,
    seed: int = 0,
    gpu_id: int = -1,
    minutes: float | None = None,
) -> None:
    """Write the name or directory of the biLM to RUN/bilm.txt.

    With some minutes, a pretraining has as many steps as one core of this machine takes in them.
    """
    if minutes is not None and not minutes > 0:
        raise ValueError(f"--vars.minutes is {minutes:g}: give a number above 0.")
    ready = "en_sm" if lang == "en" else str(WEIGHTS / f"{lang}_sm")
    is_ready = lang == "en" or Path(ready).exists()
    if bilm == "auto":
        bilm = ready if is_ready else "pretrain"
        own = run / "pretrained" / "model-best"
        if bilm != "pretrain" and own.exists():
            msg.warn(f"Not using {own}: for that, give --vars.bilm pretrain")
    if bilm in ("adapt", "pretrain"):
        out, chosen = run / f"{bilm}ed", find_size(size)
        if bilm == "adapt":
            if not is_ready:
                raise ValueError(
                    f"There is no biLM for the language '{lang}' to adapt; pretrain one with "
                    f"--vars.bilm pretrain."
                )
            settings, start = "configs/pretrain_adapt.cfg", ["--from", ready]
        else:
            settings, start = str(run / "pretrain.cfg"), []
            gpu = ["--gpu"] if gpu_id >= 0 else []
            shape = "hour" if minutes and size == "full" else chosen.bilm
            elmo("init-config", settings, "--size", shape, "--lang", lang, "--force", *gpu)
        if config != "auto":
            settings = config
        for split in ("train", "dev"):
            shards, text = run / "shards" / split, run / "text" / f"{split}.txt"
            if (
                not shards.exists()
                or shards.stat().st_mtime < text.stat().st_mtime
                or Shards(shards).card() != {"lang": lang, "tokenizer": tokenizer}
            ):
                shutil.rmtree(shards, ignore_errors=True)
                if split == "train" and (out / CHECKPOINT).exists():
                    msg.warn(
                        f"{text}, its language or the tokenizer has changed since the pretraining "
                        f"began: give another --vars.run"
                    )
                elmo("tokenize", text, shards, "--lang", lang, "--tokenizer", tokenizer)
        paths: list[object] = [
            "--paths.train", run / "shards" / "train", "--paths.dev", run / "shards" / "dev",
            "--training.seed", seed,
        ]  # fmt: skip
        if minutes:
            os.environ["OMP_NUM_THREADS"] = "1"
            facts = json.loads((run / FACTS).read_text(encoding="utf-8"))
            paths += [
                "--model.max_characters_per_token", facts["max_characters_per_token"],
                "--training.max_epochs", MOST_EPOCHS, "--training.eval_words", EVAL_WORDS,
            ]  # fmt: skip
            if config == "auto":
                if gpu_id < 0 and has_fast_bfloat16():
                    paths += ["--training.mixed_precision", "true"]
                elif gpu_id < 0:
                    msg.info("Without products in bfloat16, which are not faster on this CPU")
        lengths: list[object] = []
        if minutes and not steps and size == "full":
            lengths = [
                "--minutes", minutes, "--training.max_steps", MOST_STEPS,
                "--training.eval_every", 250, "--training.log_every", 25,
            ]  # fmt: skip
        elif config == "auto" or steps:
            steps = steps or chosen.bilm_steps
            if size != "full" and steps > chosen.bilm_steps:
                msg.info(f"Only {chosen.bilm_steps} steps: the size is {size}")
                steps = chosen.bilm_steps
            lengths = [
                "--training.max_steps", steps,
                "--training.warmup_steps", steps // 20, "--training.decay_steps", steps // 3,
                "--training.eval_every", max(1, steps // 20),
                "--training.log_every", max(1, min(steps // 20, 100)),
            ]  # fmt: skip
        resume = ["--resume"] if out.exists() else []
        elmo(
            "pretrain", settings, out, *resume, "--gpu-id", gpu_id, *start, *paths, *lengths,
        )  # fmt: skip
        bilm = str(out / "model-best")
    (run / "bilm.txt").write_text(f"{bilm}\n", encoding="utf-8")
    msg.good("The biLM", bilm)


def elmo(*arguments: object) -> None:
    """Run a command of `spacy elmo`, which ends by itself after Ctrl-C."""
    command = [sys.executable, "-m", "spacy", "elmo", *map(str, arguments)]
    print("Running:", " ".join(["python", *command[1:]]), flush=True)
    process = subprocess.Popen(command)
    while process.returncode is None:
        try:
            process.wait()
        except KeyboardInterrupt:
            msg.info("Stopping after the current step")
    if process.returncode:
        raise SystemExit(process.returncode)


if __name__ == "__main__":
    typer.run(main)
