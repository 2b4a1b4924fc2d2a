"""``python -m spacy elmo …``: importing this module adds the commands to spaCy's command line.

Every ``spacy`` command imports it, so the commands import heavy modules inside their functions.
"""

from __future__ import annotations

import typer
from spacy.cli import app as spacy_app

from .add import add_cli
from .closed_output import Commands
from .compare import compare_cli
from .convert import convert_cli
from .demo import demo_cli
from .download import download_cli
from .encode import encode_cli
from .info import info_cli
from .init_config import init_config_cli
from .perplexity import perplexity_cli
from .plots import plot_mix_cli, plot_training_cli
from .predict import predict_cli
from .pretrain import pretrain_cli
from .senses import senses_cli
from .tokenize import tokenize_cli

# Allows settings of the config as options, as `spacy train` does.
OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}


HELP = "Commands for ELMo, contextual vectors from a bidirectional language model."
app = typer.Typer(name="elmo", cls=Commands, help=HELP, no_args_is_help=True)
app.command("demo")(demo_cli)
app.command("add", context_settings=OVERRIDES)(add_cli)
app.command("compare", context_settings=OVERRIDES)(compare_cli)
app.command("info")(info_cli)
app.command("download")(download_cli)
app.command("encode")(encode_cli)
app.command("convert")(convert_cli)
app.command("init-config")(init_config_cli)
app.command("tokenize")(tokenize_cli)
app.command("pretrain", context_settings=OVERRIDES)(pretrain_cli)
app.command("plot-training")(plot_training_cli)
app.command("perplexity")(perplexity_cli)
app.command("predict")(predict_cli)
app.command("senses")(senses_cli)
app.command("plot-mix")(plot_mix_cli)

spacy_app.add_typer(app)
