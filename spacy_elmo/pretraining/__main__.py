"""``python -m spacy_elmo.pretraining``: the trainer where there is no spaCy."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .config import read_config, split_overrides
from .train import pretrain


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m spacy_elmo.pretraining",
        description="Train a biLM on sentence shards. Needs PyTorch, NumPy and safetensors only. "
        "Override settings of the config as --section.name VALUE.",
        allow_abbrev=False,
    )
    parser.add_argument("config", type=Path, help="config in JSON, as `elmo pretrain` writes it")
    parser.add_argument("out", type=Path, help="directory for models, checkpoint and log")
    parser.add_argument("--gpu-id", "-g", type=int, default=-1, help="GPU ID or -1 for CPU")
    parser.add_argument("--from", dest="start", metavar="NAME", help="biLM to start from")
    parser.add_argument("--resume", action="store_true", help="resume from the checkpoint in OUT")
    parser.add_argument("--quiet", "-q", action="store_true", help="print nothing but errors")
    try:
        overrides, others = split_overrides(sys.argv[1:])
        options = parser.parse_args(others)
        if options.start is not None:
            overrides["paths.weights"] = options.start
        progress = pretrain(
            lambda resumed: read_config(options.config, overrides, resumed),
            options.out,
            device="cpu" if options.gpu_id < 0 else f"cuda:{options.gpu_id}",
            resume=options.resume,
            quiet=options.quiet,
        )
    except (ValueError, OSError) as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    if progress.step < progress.n_steps:  # it was stopped
        sys.exit(130)


if __name__ == "__main__":
    main()
