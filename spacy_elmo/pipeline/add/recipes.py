"""The blocks that `add_elmo` writes into a config: how each kind of component learns from ELMo.

docs/evidence.md has the measurements behind each choice.
"""

from __future__ import annotations

from ..elmo_model import LISTENER, SPACYS_LISTENER
from .blocks import EMBED_AND_ENCODE, HASH_EMBED_CNN, Block, kind_of

FINE_TUNING_RATE = 0.1  # the biLM's learn_rate_factor

# Factories of components that cut Docs into new Docs, which have rows of doc.tensor but no layers:
# these components share the elmo component's mix.
PARTS_OF_DOCS = {"entity_linker"}

# Factories of components that learn where sentences end. For these the biLM reads whole Docs:
# segments that end with sentence-final marks would mislead them.
SENTENCE_ENDS = {"parser", "senter"}

# Factories of components that find names. Behind an encoder of their own a mix gains nothing.
NAMES = {"ner", "spancat", "spancat_singlelabel"}

# Factories of classifiers, whose whole model is replaced; and whether each text has one class.
CLASSIFIERS = {"textcat": True, "textcat_multilabel": False}


def listener(factory: str, elmo: str) -> Block:
    """The block of a listener.

    Args:
        factory: factory of the component that listens.
        elmo: name of the elmo component. The width of spaCy's listener is a variable, which refers
            to that component.
    """
    if factory in PARTS_OF_DOCS:
        width = f"${{components.{elmo}.model.width}}"
        return {"@architectures": SPACYS_LISTENER, "width": width, "upstream": elmo}
    return {"@architectures": LISTENER, "upstream": elmo}


def make_classifier(factory: str, elmo: str) -> Block:
    """The block of a classifier's whole model.

    Args:
        factory: factory of the classifier.
        elmo: name of the elmo component.
    """
    settings = {"exclusive_classes": CLASSIFIERS[factory], "tok2vec": listener(factory, elmo)}
    return {"@architectures": "spacy-elmo.TextCatLinear.v1", **settings}


def make_recipe(factory: str, elmo: str, tok2vec: Block, light: bool) -> Block:
    """The block of a component's token vectors with ELMo.

    Args:
        factory: factory of the component.
        elmo: name of the elmo component.
        tok2vec: the component's token vectors without ELMo; their embedding and encoder are kept.
        light: use only ELMo's vectors, without an embedding or an encoder.
    """
    if light:
        return listener(factory, elmo)
    parts = embed_and_encode(tok2vec)
    reads_once = {*PARTS_OF_DOCS, *NAMES, "tok2vec"}
    reads_twice = parts["encode"] is not None and factory not in reads_once
    parts["output_elmo"] = listener(factory, elmo) if reads_twice else None
    return {"@architectures": "spacy-elmo.Tok2Vec.v1", "elmo": listener(factory, elmo), **parts}


def make_own_mix(factory: str, elmo: str, tok2vec: Block) -> Block:
    """The block for a listener to a `tok2vec` that reads ELMo: it gets a mix beside the listener.

    Args:
        factory: factory of the component that listens.
        elmo: name of the elmo component.
        tok2vec: block of the listener.
    """
    mix = listener(factory, elmo)
    return {"@architectures": "spacy-elmo.Tok2Vec.v1", "embed": tok2vec, "elmo": mix}


def embed_and_encode(tok2vec: Block) -> Block:
    """Split token vectors into embedding and encoder; an unknown model counts as an embedding."""
    if kind_of(tok2vec) in EMBED_AND_ENCODE:
        return {"embed": tok2vec.get("embed"), "encode": tok2vec.get("encode")}
    if kind_of(tok2vec) not in HASH_EMBED_CNN:
        return {"embed": tok2vec, "encode": None}
    rows, n_attrs = tok2vec["embed_size"], 4 if tok2vec["subword_features"] else 1
    embed = {  # as spaCy builds it
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": tok2vec["width"],
        "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"][:n_attrs],
        "rows": [rows, rows // 2, rows // 2, rows // 2][:n_attrs],
        "include_static_vectors": bool(tok2vec["pretrained_vectors"]),
    }
    encode = {"@architectures": "spacy.MaxoutWindowEncoder.v2"}
    encode |= {n: tok2vec[n] for n in ("width", "depth", "window_size", "maxout_pieces")}
    return {"embed": embed, "encode": encode}
