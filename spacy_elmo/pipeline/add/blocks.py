"""Blocks of a config: variables in them, and the token vectors of components."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from copy import deepcopy
from typing import Any

from ..elmo_model import ELMO_MODEL, LISTENER, SPACYS_LISTENER, find_blocks

Block = dict[str, Any]
Path = tuple[str, ...]  # from the root of a config to a block or setting
Place = tuple[Path, Path]  # a block of token vectors in a component, and the block that makes them

ELMO = {ELMO_MODEL, LISTENER}
# Models with an embedding and an encoder; ours can do without ELMo.
EMBED_AND_ENCODE = {"spacy.Tok2Vec.v1", "spacy.Tok2Vec.v2", "spacy-elmo.Tok2Vec.v1"}
HASH_EMBED_CNN = {"spacy.HashEmbedCNN.v1", "spacy.HashEmbedCNN.v2"}
TOKEN_VECTORS = {SPACYS_LISTENER, *EMBED_AND_ENCODE, *HASH_EMBED_CNN}
MAKERS = ("elmo", "tok2vec")  # factories of components that make token vectors for others


def kind_of(block: Block) -> str:
    """The registered name of a block's model; empty if the block has none."""
    return str(block.get("@architectures", ""))


def kinds_of(block: Block) -> set[str]:
    """The registered names of all models in a block."""
    return {kind_of(part) for _, part in find_blocks(block)}


def get_block(config: Block, path: Path) -> Block:
    for name in path:
        config = config[name]
    return config


def replace_variables(new: Block, old: Block, gone: Collection[Path]) -> None:
    """Replace variables by their values, if they stand for whole blocks, or for something that will
    be removed.

    Args:
        new: a config with variables.
        old: the same config without variables.
        gone: paths of blocks that will be removed.
    """
    names = re.compile("|".join(rf"\$\{{{'[.:]'.join(map(re.escape, p))}[.:}}]" for p in gone))
    for path, block in find_blocks(new):
        for name, value in block.items():
            known = get_block(old, path)[name]
            if isinstance(value, str) and (isinstance(known, dict) or names.search(value)):
                block[name] = deepcopy(known)


def copy_block(block: Block, before: Path, after: Path) -> Any:
    """A copy of a block for another path; variables that named the old path name the new one."""
    start, end = f"${{{'.'.join(before)}.", f"${{{'.'.join(after)}."
    return json.loads(json.dumps(block).replace(start, end))


def find_places(config: Block, names: Iterable[str], whole: Collection[str]) -> Iterator[Place]:
    """Find the token vectors of components, where these do not come from ELMo.

    Args:
        config: a config without variables.
        names: names of components; those that make token vectors for others are skipped.
        whole: names of components whose whole model is to be replaced.

    Raises:
        ValueError: a component listens to a component that is not a `tok2vec`.
    """
    components = config["components"]
    for name in (n for n in names if components[n]["factory"] not in MAKERS):
        model, root = {"model": components[name].get("model")}, ("components", name)
        parts = find_token_vectors(model, root)
        for path, block in [((*root, "model"), model["model"])] if name in whole else parts:
            source = path
            if kind_of(block) == SPACYS_LISTENER:
                [upstream] = upstreams(config, name, block)
                source = ("components", upstream, "model")
                if components.get(upstream, {}).get("factory") not in MAKERS:
                    raise ValueError(
                        f"'{name}' listens to '{upstream}', which is no 'tok2vec' before it."
                    )
            if not has_elmo(config, name, block):
                yield path, source


def find_token_vectors(block: Block, path: Path) -> Iterator[tuple[Path, Block]]:
    """The outermost blocks of token vectors in a block, with their paths."""
    for name, value in block.items():
        if isinstance(value, dict):
            if name == "tok2vec" or kind_of(value) in TOKEN_VECTORS:
                yield (*path, name), value
            else:
                yield from find_token_vectors(value, (*path, name))


def upstreams(config: Block, component: str, block: Block) -> list[str]:
    """Names of the components to which spaCy's listeners in a component's block listen."""
    components, pipeline = config["components"], config["nlp"]["pipeline"]
    before = pipeline[: pipeline.index(component)]
    makers = [name for name in before if components[name]["factory"] in MAKERS]
    named = [b["upstream"] for _, b in find_blocks(block) if kind_of(b) == SPACYS_LISTENER]
    return [makers[-1] if name == "*" and makers else name for name in named]


def all_upstreams(config: Block) -> set[str]:
    """Names of the components to which spaCy's listeners in a config listen."""
    components = ((name, config["components"][name]) for name in config["nlp"]["pipeline"])
    return {up for name, component in components for up in upstreams(config, name, component)}


def has_elmo(config: Block, component: str, block: Block) -> bool:
    """Return whether a block contains ELMo, or a listener to a component that contains it."""
    heard = (config["components"].get(up, {}) for up in upstreams(config, component, block))
    return any(ELMO & kinds_of(part) for part in (block, *heard))


def find_elmo(config: Block) -> str | None:
    """The name of the first elmo component in the pipeline; None if there is none."""
    components = config["components"]
    return next((n for n in config["nlp"]["pipeline"] if components[n]["factory"] == "elmo"), None)
