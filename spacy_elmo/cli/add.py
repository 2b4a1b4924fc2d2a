"""``python -m spacy elmo add``: ELMo put into a config."""

from __future__ import annotations

from pathlib import Path
from shlex import join
from typing import Annotated

import typer
from spacy.cli._util import import_code, parse_config_overrides
from wasabi import msg

from . import options


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
    Put ELMo into a config: all components that can learn from it do so.

    The config may be that of `spacy init config`, of `fill-config`, of the quickstart widget or of a
    trained pipeline. Components whose model has token vectors (a block `tok2vec`) get the recipe
    for their kind; a `tok2vec` component that nothing listens to any more is removed. The new config is complete. A component that learns from ELMo already stays as
    it is. Settings of the config can be given as options, as to `spacy train`: with `--paths.vectors
    null` the recipes are without static vectors.
    """
    from spacy.util import load_config

    from ..pipeline.add.add_elmo import add_elmo
    from ..util.files import reading

    is_stdout, notes = str(out) == "-", list[str]()
    with options.report_errors("Cannot add ELMo", as_json=is_stdout):
        if not is_stdout:
            options.check_new(out, force)
        import_code(code)
        path = config / "config.cfg" if config.is_dir() else config
        overrides = parse_config_overrides(ctx.args)
        with reading("the config", str(path)):  # which may be a pipe
            loaded = load_config(path, overrides)
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
