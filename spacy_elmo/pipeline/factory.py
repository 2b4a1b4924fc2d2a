"""The factory ``elmo``: what ``nlp.add_pipe("elmo")`` makes, and the settings it starts from."""

from typing import List  # noqa: UP035

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Config, Model
from thinc.types import Floats2d

from .component import Elmo

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006

DEFAULT_CONFIG = """
[elmo]
store_layers = false
vectors = "auto"

[elmo.model]
@architectures = "spacy-elmo.Elmo.v1"
weights = "en_sm"
frozen = true
width = null
initial_state = "auto"
segments = "auto"
max_words = 400
batch_words = 4096
learn_rate_factor = 1.0
cache_mb = 1024
cache_half = false

[elmo.model.mix]
@architectures = "spacy-elmo.ScalarMix.v1"
initial_weights = null
gamma = 1.0
layer_norm = false
dropout = 0.0
l2 = 0.0
trainable = true
"""


@Language.factory(
    "elmo",
    assigns=["doc.tensor", "doc._.elmo", "span._.elmo", "token._.elmo"],
    default_config=Config().from_str(DEFAULT_CONFIG)["elmo"],
)
def make_elmo(
    nlp: Language,
    name: str,
    model: Model[List[Doc], List[Floats2d]],
    store_layers: bool,
    vectors: str,
) -> Elmo:
    """An elmo component; no file is opened here."""
    elmo = Elmo(nlp.vocab, model, name, store_layers=store_layers, vectors=vectors)
    elmo.pipeline_meta = nlp._meta  # the same as nlp.meta, which would ask each component
    return elmo
