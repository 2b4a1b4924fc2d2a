"""The blocks that `add_elmo` writes into a config, with which components learn from ELMo.

What each choice was measured by: docs/evidence.md. This file alone decides.
"""

from __future__ import annotations

from .blocks import EMBED_AND_ENCODE, HASH_EMBED_CNN, SPACYS_LISTENER, Block, kind_of

FINE_TUNING_RATE = 0.1  # the biLM's learn_rate_factor

# By factory. These apply their model to parts of Docs as Docs of their own, which have the rows of
# doc.tensor and no layers: they share the elmo component's mix.
PARTS_OF_DOCS = {"entity_linker"}

# By factory. These learn where sentences end. For them the biLM reads whole Docs: what it reads at
# once by default, the text between sentence-final marks, misleads them.
SENTENCE_ENDS = {"parser", "senter"}

# By factory: whether a text has one class. Of these, ELMo replaces spaCy's whole model.
CLASSIFIERS = {"textcat": True, "textcat_multilabel": False}


def listener(factory: str, elmo: str) -> Block:
    """The block with which a component listens.

    Args:
        factory: the component's.
        elmo: name of the elmo component. spaCy's listener takes its width from that one's model.
    """
    if factory in PARTS_OF_DOCS:
        width = f"${{components.{elmo}.model.width}}"
        return {"@architectures": SPACYS_LISTENER, "width": width, "upstream": elmo}
    return {"@architectures": "spacy-elmo.ElmoListener.v1", "upstream": elmo}


def make_classifier(factory: str, elmo: str) -> Block:
    """The block of a classifier's whole model.

    Args:
        factory: the component's.
        elmo: name of the elmo component.
    """
    settings = {"exclusive_classes": CLASSIFIERS[factory], "tok2vec": listener(factory, elmo)}
    return {"@architectures": "spacy-elmo.TextCatLinear.v1", **settings}


def make_recipe(factory: str, elmo: str, tok2vec: Block, light: bool) -> Block:
    """The block of a component's token vectors with ELMo.

    Args:
        factory: the component's.
        elmo: name of the elmo component.
        tok2vec: its token vectors without ELMo, whose embedding and encoder are kept.
        light: ELMo's vectors alone, without an embedding or an encoder.
    """
    if light:
        return listener(factory, elmo)
    parts = embed_and_encode(tok2vec)
    reads_twice = parts["encode"] is not None and factory not in (*PARTS_OF_DOCS, "tok2vec")
    parts["output_elmo"] = listener(factory, elmo) if reads_twice else None
    return {"@architectures": "spacy-elmo.Tok2Vec.v1", "elmo": listener(factory, elmo), **parts}


def make_own_mix(factory: str, elmo: str, tok2vec: Block) -> Block:
    """The block of a component that listens to a `tok2vec` which reads ELMo: its own mix, too.

    Args:
        factory: the component's.
        elmo: name of the elmo component.
        tok2vec: the listener.
    """
    own = listener(factory, elmo)
    return {"@architectures": "spacy-elmo.Tok2Vec.v1", "embed": tok2vec, "elmo": own}


def embed_and_encode(tok2vec: Block) -> Block:
    """The embedding and the encoder of token vectors; those of an unknown kind are an embedding."""
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
