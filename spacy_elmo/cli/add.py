"""``python -m spacy elmo add``: adds ELMo to a config."""

from __future__ import annotations

from pathlib import Path
from shlex import join
from typing import Annotated

import typer
from wasabi import msg

from . import options


@options.app.command("add", context_settings=options.OVERRIDES)
def add_cli(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config of spaCy, or the directory of a trained pipeline; - for the standard input", metavar="IN", allow_dash=True)],
    out: Annotated[Path, typer.Argument(help="File to write, or - for the standard output", metavar="OUT", dir_okay=False, allow_dash=True)] = Path("-"),
    weights: Annotated[str | None, typer.Option("--weights", "-w", help="Name or directory of a biLM (default: that of the config, or en_sm)")] = None,
    frozen: Annotated[bool | None, typer.Option("--frozen/--fine-tune", help="Whether to keep the biLM as it is or to train it too, at a tenth of the learning rate (default: as in the config, or frozen)", show_default=False)] = None,
    light: Annotated[bool, typer.Option("--light", help="Let components read ELMo alone, without an embedding and an encoder of their own: smaller, and less accurate")] = False,
    code: options.Code = None,
    force: options.Force = False,
) -> None:  # fmt: skip
    """
    Add ELMo to a config, for every component that can learn from it.

    The config may come from `spacy init config`, `fill-config`, the quickstart widget or a trained
    pipeline. Each component whose model has token vectors (a block `tok2vec`) gets the ELMo layers
    for its kind. A component that learns from ELMo already stays as it is. A `tok2vec` component
    reads ELMo for its listeners, or is removed if it has none left. The new config is complete.
    Settings of the config can be given as options, as to `spacy train`: `--paths.vectors null`
    leaves out static vectors.
    """
    from ..pipeline.add.add_elmo import add_elmo

    is_stdout, notes = str(out) == "-", list[str]()
    with options.report_errors("Cannot add ELMo", as_json=is_stdout):
        options.check_new(out, force)
        loaded = options.read_config(ctx, config, code)
        made = add_elmo(loaded, weights=weights, frozen=frozen, light=light, note=notes.append)
        if not is_stdout:
            options.write_new(out, made.to_str())
        (msg.good if notes else msg.info)("Added ELMo" if notes else "ELMo is there already")
        for note in notes:
            msg.text(f"- {note}")
        if not is_stdout:
            msg.good("Saved config", out)
            command = ["python", "-m", "spacy", "train", str(out)]
            command += ["--paths.train", "./train.spacy", "--paths.dev", "./dev.spacy"]
            print(join(command if code is None else [*command, "--code", str(code)]))
    if is_stdout:
        print(made.to_str())
