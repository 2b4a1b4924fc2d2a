"""The blocks that `add_elmo` writes into a config, with which components learn from ELMo.

What each choice was measured by: docs/evidence.md. This file alone decides.
"""

from __future__ import annotations

from .config_blocks import Block
from .elmo_model import LISTENER, SPACYS_LISTENER

TOK2VEC, TEXTCAT_LINEAR = "spacy-elmo.Tok2Vec.v1", "spacy-elmo.TextCatLinear.v1"
# Models of token vectors that have an embedding and an encoder; ours may be without ELMo.
EMBED_AND_ENCODE = {"spacy.Tok2Vec.v1", "spacy.Tok2Vec.v2", TOK2VEC}
HASH_EMBED_CNN = {"spacy.HashEmbedCNN.v1", "spacy.HashEmbedCNN.v2"}

# By factory. These read ELMo at the input of their encoder; all others, such as what predicts tags
# and trees, gain more with a second mix at its output.
INPUT_ALONE = {
    "ner", "beam_ner", "spancat", "spancat_singlelabel", "span_finder", "textcat",
    "textcat_multilabel", "entity_linker",
}  # fmt: skip

# By factory. These apply their model to parts of Docs as Docs of their own, which have the rows of
# doc.tensor and no layers: they share the elmo component's mix.
PARTS_OF_DOCS = {"entity_linker"}

# By factory: whether a text has one class. Of these, ELMo replaces spaCy's whole model.
CLASSIFIERS = {"textcat": True, "textcat_multilabel": False}
SPACYS_CLASSIFIERS = (
    "spacy.TextCatBOW.", "spacy.TextCatEnsemble.", "spacy.TextCatCNN.", "spacy.TextCatReduce.",
    "spacy.TextCatParametricAttention.",
)  # fmt: skip

FINE_TUNING_RATE = 0.1  # the biLM's learn_rate_factor


def listener(factory: str, elmo: str) -> Block:
    """The block with which a component listens.

    Args:
        factory: the component's.
        elmo: name of the elmo component. spaCy's listener takes its width from that one's model.
    """
    if factory in PARTS_OF_DOCS:
        width = f"${{components.{elmo}.model.width}}"
        return {"@architectures": SPACYS_LISTENER, "width": width, "upstream": elmo}
    return {"@architectures": LISTENER, "upstream": elmo}


def make_classifier(factory: str, vectors: str | None, elmo: str) -> tuple[Block, str]:
    """The block of a classifier's whole model, and what it is, in words.

    Args:
        factory: the component's.
        vectors: the pipeline's static vectors; None without.
        elmo: name of the elmo component.
    """
    block = {
        "@architectures": TEXTCAT_LINEAR,
        "exclusive_classes": CLASSIFIERS[factory],
        "include_static_vectors": vectors is not None,
        "tok2vec": listener(factory, elmo),
    }
    return block, "one linear map of ELMo and the words"


def make_recipe(factory: str, tok2vec: Block, elmo: str, light: bool) -> tuple[Block, str]:
    """The block of a component's token vectors with ELMo, and what it is, in words.

    Args:
        factory: the component's.
        tok2vec: its token vectors without ELMo, whose embedding and encoder are kept.
        elmo: name of the elmo component.
        light: ELMo's vectors alone, without an embedding or an encoder.
    """
    if light:
        return listener(factory, elmo), "ELMo alone, without an encoder"
    parts = embed_and_encode(tok2vec)
    block = {"@architectures": TOK2VEC, "elmo": listener(factory, elmo), **parts}
    if parts["encode"] is None:
        return {**block, "output_elmo": None}, "ELMo beside other token vectors"
    if factory in INPUT_ALONE:
        return {**block, "output_elmo": None}, "ELMo at the input of an encoder"
    block["output_elmo"] = listener(factory, elmo)
    return block, "ELMo at the input and the output of an encoder"


def embed_and_encode(tok2vec: Block) -> Block:
    """The embedding and the encoder of token vectors; those of an unknown kind are an embedding."""
    kind = tok2vec.get("@architectures")
    if kind in EMBED_AND_ENCODE:
        return {"embed": tok2vec.get("embed"), "encode": tok2vec.get("encode")}
    if kind not in HASH_EMBED_CNN:
        return {"embed": tok2vec, "encode": None}
    rows, width = tok2vec["embed_size"], tok2vec["width"]  # as spaCy builds it
    subwords = tok2vec["subword_features"]
    return {
        "embed": {
            "@architectures": "spacy.MultiHashEmbed.v2",
            "width": width,
            "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"] if subwords else ["NORM"],
            "rows": [rows, rows // 2, rows // 2, rows // 2] if subwords else [rows],
            "include_static_vectors": bool(tok2vec["pretrained_vectors"]),
        },
        "encode": {
            "@architectures": "spacy.MaxoutWindowEncoder.v2",
            "width": width,
            **{name: tok2vec[name] for name in ("depth", "window_size", "maxout_pieces")},
        },
    }
