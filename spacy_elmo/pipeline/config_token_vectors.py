"""Token vectors of the components of a config: where they are, and where they come from."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from .config_blocks import Block, Path, find_blocks
from .elmo_model import ELMO_MODEL, LISTENER, SPACYS_LISTENER
from .recipes import CLASSIFIERS, EMBED_AND_ENCODE, HASH_EMBED_CNN, SPACYS_CLASSIFIERS

ELMO = {ELMO_MODEL, "spacy-elmo.BiLM.v1", LISTENER}
MAKERS = ("elmo", "tok2vec")  # factories
TOKEN_VECTORS = {SPACYS_LISTENER, *EMBED_AND_ENCODE, *HASH_EMBED_CNN}


class Place(NamedTuple):
    """Token vectors in a component's model.

    Attributes:
        component: its name.
        path: of their block.
        block: without variables.
        source: name of the component that makes them: this one, or one that it listens to.
    """

    component: str
    path: Path
    block: Block
    source: str

    @property
    def is_shared(self) -> bool:
        """Return whether another component makes them."""
        return self.source != self.component

    @property
    def source_path(self) -> Path:
        """Of the block that makes them."""
        return ("components", self.source, "model") if self.is_shared else self.path


def find_places(config: Block, classifiers: Collection[str] = ()) -> Iterator[Place]:
    """The token vectors of all components but those that make them for others.

    Args:
        config: without variables.
        classifiers: components of which the whole model is the place.
    """
    for name in config["nlp"]["pipeline"]:
        component = config["components"][name]
        if component["factory"] in MAKERS:
            continue
        model, sources = component.get("model"), list[str]()
        for path, block in find_token_vectors({"model": model}):
            source = name
            if block.get("@architectures") == SPACYS_LISTENER:
                source = find_upstream(config, name, block)
            sources.append(source)
            if name not in classifiers:
                yield Place(name, ("components", name, *path), block, source)
        if name in classifiers:
            yield Place(name, ("components", name, "model"), model, next(iter(sources), name))


def find_token_vectors(block: Block) -> Iterator[tuple[Path, Block]]:
    """The outermost ones in a block, with their paths."""
    for name, value in block.items():
        if isinstance(value, dict):
            if name == "tok2vec" or value.get("@architectures") in TOKEN_VECTORS:
                yield (name,), value
            else:
                yield from (((name, *path), found) for path, found in find_token_vectors(value))


def find_upstream(config: Block, component: str, listener: Block) -> str:
    """The name of the component that a listener of spaCy's listens to."""
    pipeline = config["nlp"]["pipeline"]
    before = pipeline[: pipeline.index(component)]
    makers = [name for name in before if config["components"][name]["factory"] in MAKERS]
    upstream = listener["upstream"]
    return makers[-1] if upstream == "*" and makers else upstream


def has_elmo(config: Block, component: str, block: Block) -> bool:
    """Return whether a block in a component's model has ELMo in it, or listens to what has."""
    for _, found in find_blocks(block):
        if found.get("@architectures") in ELMO:
            return True
        if found.get("@architectures") == SPACYS_LISTENER:
            upstream = find_upstream(config, component, found)
            model = config["components"].get(upstream, {}).get("model")
            if model is not None and has_elmo(config, upstream, model):
                return True
    return False


def find_elmo(config: Block) -> str | None:
    """The name of the first elmo component in the pipeline, if there is one."""
    components = config["components"]
    return next((n for n in config["nlp"]["pipeline"] if components[n]["factory"] == "elmo"), None)


def find_classifiers(config: Block) -> list[str]:
    """Names of the components that classify texts with a model of spaCy's."""
    components = {name: config["components"][name] for name in config["nlp"]["pipeline"]}
    kinds = {
        name: str((component.get("model") or {}).get("@architectures"))
        for name, component in components.items()
        if component["factory"] in CLASSIFIERS
    }
    return [name for name, kind in kinds.items() if kind.startswith(SPACYS_CLASSIFIERS)]


def find_bags_of_words(config: Block) -> list[str]:
    """Names of the components whose model counts words, and has no token vectors."""
    models = {n: config["components"][n].get("model") or {} for n in config["nlp"]["pipeline"]}
    kinds = {name: str(model.get("@architectures")) for name, model in models.items()}
    return [name for name, kind in kinds.items() if kind.startswith("spacy.TextCatBOW.")]


def find_listened_to(config: Block, components: Collection[str]) -> set[str]:
    """Names of the components that listeners of spaCy's in some components listen to."""
    return {
        find_upstream(config, name, block)
        for name in config["nlp"]["pipeline"]
        if name in components
        for _, block in find_blocks(config["components"][name])
        if block.get("@architectures") == SPACYS_LISTENER
    }
