"""The factory ``elmo``, for ``nlp.add_pipe("elmo")``."""

import json
from typing import List, Optional, Union  # noqa: UP035
from weakref import ref

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from .component import Elmo
from .extensions import warn_of_others

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006, UP007, UP045

# spaCy fills in the settings of both from their signatures.
DEFAULT_MODEL = {
    "@architectures": "spacy-elmo.Elmo.v1",
    "mix": {"@architectures": "spacy-elmo.ScalarMix.v1"},
}


@Language.factory(
    "elmo",
    assigns=["doc.tensor", "doc._.elmo", "span._.elmo", "token._.elmo"],
    default_config={"store_layers": False, "vectors": "auto", "model": DEFAULT_MODEL},
)
def make_elmo(
    nlp: Language,
    name: str,
    model: Model[List[Doc], List[Floats2d]],
    store_layers: bool,
    vectors: str,
    weights: Optional[Union[str, List[str]]] = None,
) -> Elmo:
    """Construct an elmo component; no file is opened.

    Raises:
        ValueError: ``weights`` are set here. They are a setting of the model, but many try this
            first, and spaCy's own error for an unknown setting would not name the right place.
    """
    if weights is not None:
        raise ValueError(
            f"The elmo component's weights are a setting of its model. In a config, set 'weights' "
            f"in the block [components.{name}.model]; in Python, "
            f'nlp.add_pipe("elmo", config={{"model": {{"weights": {json.dumps(weights)}}}}}).'
        )
    warn_of_others()
    elmo = Elmo(nlp.vocab, model, name, store_layers=store_layers, vectors=vectors)
    elmo.doc_layers.nlp = ref(nlp)
    return elmo
