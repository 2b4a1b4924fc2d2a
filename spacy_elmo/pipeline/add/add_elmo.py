"""`spacy_elmo.add_elmo`: adds ELMo to the config of any pipeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from spacy.language import DEFAULT_CONFIG
from spacy.util import copy_config, get_sourced_components, load_model_from_config
from thinc.api import Config

from ...weights.find import WeightsLike, find_weights, to_config
from ..elmo_model import find_blocks
from . import blocks, recipes
from .blocks import Block, Path, Place, all_upstreams, find_elmo, get_block, kind_of

BATCH_SIZE = 128  # Docs, instead of spaCy's 1000: the layers of a batch are in memory together

Weights = WeightsLike | None
Note = Callable[[str], None]


def add_elmo(
    config: Block, *, weights: Weights = None, frozen: bool | None = None, light: bool = False,
    note: Note = lambda line: None,
) -> Config:  # fmt: skip
    """Add ELMo to a config, for every component that can learn from it.

    A component can if its model has token vectors: a block ``tok2vec``, or one of spaCy's
    architectures for them. Frozen and sourced components stay as they are, and so do components
    that learn from ELMo already. A `tok2vec` component to which others listen reads ELMo for all of
    them. Each listener also gets a mix of its own, except an `ner` or `spancat` that is the only
    one.

    Args:
        config: a config of spaCy, complete or not. It is not changed.
        weights: the weights of the biLM; None for those in the config, or for ``en_sm``.
        frozen: whether the biLM is frozen; None for what the config says, or for True. A biLM that
            is trained has a tenth of the tasks' learning rate.
        light: give components only a listener, without an embedding and an encoder.
        note: called with a line of text for each change.

    Returns:
        The complete config.

    Raises:
        ValueError: no component can learn from ELMo; the config has a transformer, or a listener
            or a pretraining that ELMo would break; it is not valid, or no config; or the weights
            cannot be found.
    """
    if not isinstance(config, dict):
        raise ValueError(f"Give a config, such as spacy.util.load_config(path), not {config!r}.")
    for kind in blocks.kinds_of(config.get("components", {})):
        if kind.startswith(("spacy-transformers.", "spacy-curated-transformers.")):
            raise ValueError(f"ELMo is for pipelines without a transformer, found '{kind}'.")
    sourced, new = get_sourced_components(config), fill(config)
    old = new.interpolate()
    stay = {*sourced, *old["training"]["frozen_components"]}
    free = {n: old["components"][n] for n in old["nlp"]["pipeline"] if n not in stay}
    models = {n: c["model"] for n, c in free.items() if c["factory"] in recipes.CLASSIFIERS}
    classifiers = [n for n, m in models.items() if kind_of(m).startswith("spacy.TextCat")]
    elmo = old["components"].get(find_elmo(old)) or make_elmo()
    weights_used = weights or elmo["model"]["weights"]
    if light or not (classifiers and find_weights(weights_used).statistics()):
        classifiers = []
    places = [*blocks.find_places(old, free, classifiers)]
    if not places and not blocks.ELMO & blocks.kinds_of(free):
        raise ValueError(
            f"No component can learn from ELMo. One that is to be trained needs token vectors (a "
            f"block tok2vec); a classifier, weights with statistics, and not --light. Pipeline: "
            f"{', '.join(old['nlp']['pipeline'])}."
        )
    shared = [] if light else shared_tok2vecs(old, free, places)
    if places:
        rebuilt = [p for p in shared if kind_of(get_block(old, p)) not in blocks.EMBED_AND_ENCODE]
        blocks.replace_variables(new, old, [*rebuilt, *(path for path, _ in places)])
        add_component(new, note)
    if weights is not None or frozen is not None:
        set_bilm(new, sourced, weights, frozen, note)
    if places:
        write_recipes(new, old, places, shared, light, note)
        remove_unused_tok2vec(new, old, [*shared, *(path for path, _ in places)], note)
        average_parameters(new, note)
    new = fill(new)
    new["components"].update({n: c for n, c in sourced.items() if n in new["components"]})
    return new


def fill(config: Block) -> Config:
    """Add all defaults to a config, as `spacy init fill-config` does; variables stay."""
    filled = load_model_from_config(config, auto_fill=True, validate=False).config
    return load_model_from_config(copy_config(filled)).config  # validates it


def make_elmo() -> Block:
    """The block of an elmo component with all defaults."""
    nlp = {"lang": "en", "pipeline": ["elmo"]}
    return fill({"nlp": nlp, "components": {"elmo": {"factory": "elmo"}}})["components"]["elmo"]


def add_component(new: Block, note: Note) -> None:
    """Add an elmo component, unless there is one."""
    if find_elmo(new) is None:
        new["components"]["elmo"] = make_elmo()
        new["nlp"]["pipeline"].insert(0, "elmo")
        note("elmo: added, first in the pipeline")
    if new["nlp"]["batch_size"] == DEFAULT_CONFIG["nlp"]["batch_size"]:
        new["nlp"]["batch_size"] = BATCH_SIZE
        note(f"[nlp] batch_size: {BATCH_SIZE}, because the layers of a batch take memory")


def set_bilm(new: Block, sourced: Block, weights: Weights, frozen: bool | None, note: Note) -> None:
    """Set the biLM's weights, and whether it is frozen; None leaves a setting as it is."""
    name, changes = find_elmo(new), dict[str, Any]()
    if name is None or name in sourced:
        raise ValueError("The biLM cannot be set: no elmo component is made by the config itself.")
    model = new["components"][name]["model"]
    if weights is not None:
        width = find_weights(weights).config().width
        changes |= {"weights": to_config(weights), "width": model["width"] and width}
    if frozen is not None and model["frozen"] != frozen:
        rate = 1.0 if frozen else recipes.FINE_TUNING_RATE
        changes |= {"frozen": frozen, "learn_rate_factor": rate}
    for setting, value in changes.items():
        if model[setting] != value:
            model[setting] = value
            note(f"{name}: {setting} = {value}")


def shared_tok2vecs(old: Block, free: Block, places: list[Place]) -> list[Path]:
    """Paths of the models of trained `tok2vec` components that make the token vectors in some
    places; none if a component needs ELMo's ``doc.tensor``, which a `tok2vec` would replace."""
    if any(free[path[1]]["factory"] in recipes.PARTS_OF_DOCS for path, _ in places):
        return []
    sources = dict.fromkeys(source for path, source in places if source != path)
    return [path for path in sources if free.get(path[1], {}).get("factory") == "tok2vec"]


def write_recipes(
    new: Config, old: Block, places: list[Place], shared: list[Path], light: bool, note: Note
) -> None:
    """Write a recipe into each place, and into each shared `tok2vec`."""
    elmo, vectors = str(find_elmo(new)), old["initialize"]["vectors"]
    n_listeners = Counter(source for _, source in places)
    for path, source in [*((path, path) for path in shared), *places]:
        name = path[1]
        factory, block = old["components"][name]["factory"], get_block(old, source)
        if kind_of(block) in blocks.EMBED_AND_ENCODE:  # with its variables
            block = blocks.copy_block(get_block(new, source), source, path)
        if factory in recipes.CLASSIFIERS and path[-1] == "model":
            recipe = recipes.make_classifier(factory, elmo)
        elif source in shared and path not in shared:
            recipe = get_block(new, path)
            if n_listeners[source] > 1 or factory not in recipes.NAMES:
                recipe = recipes.make_own_mix(factory, elmo, recipe)
        else:
            recipe = recipes.make_recipe(factory, elmo, block, light)
        is_same = recipe == get_block(new, path)
        note(f"{name}: reads ELMo, by {source[1] if is_same else kind_of(recipe)}")
        for _, part in find_blocks(recipe):
            if vectors is None and part.get("include_static_vectors"):
                part["include_static_vectors"] = False
                note(f"{name}: without static vectors, because [initialize] vectors is null")
        if factory in recipes.PARTS_OF_DOCS:
            weights = new.interpolate()["components"][elmo]["model"]["weights"]
            new["components"][elmo]["model"]["width"] = find_weights(weights).config().width
        bilm = new["components"][elmo].get("model", {})  # a sourced component has none
        if factory in recipes.SENTENCE_ENDS and bilm.get("segments") == "auto":
            bilm["segments"] = "doc"
            note(f"{elmo}: segments = doc, because '{name}' learns where sentences end")
        get_block(new, path[:-1])[path[-1]] = recipe


def average_parameters(new: Config, note: Note) -> None:
    """Average the parameters of the tasks, if the biLM is frozen: with few labels, those of a
    single step are often worse. spaCy cannot average parameters of PyTorch, such as the biLM's."""
    optimizer, bilm = new["training"]["optimizer"], new["components"][str(find_elmo(new))]
    is_frozen = bilm.get("model", {}).get("frozen", True)
    if is_frozen and optimizer.get("use_averages") is False:
        optimizer["use_averages"] = True
        note("[training.optimizer] use_averages: true, because few labels make steps differ")


def remove_unused_tok2vec(new: Config, old: Block, changed: list[Path], note: Note) -> None:
    """Remove each `tok2vec` component that has lost all its listeners.

    Raises:
        ValueError: spaCy is to pretrain one of the models that were changed or removed.
    """
    plain, training = new.interpolate(), new["training"]
    unused = all_upstreams(old) - all_upstreams(plain)
    for name in sorted(unused):
        blocks.replace_variables(new, plain, [("components", name)])
        del new["components"][name], plain["components"][name]
        new["initialize"]["components"].pop(name, None)
        trained = training["frozen_components"], training["annotating_components"]
        for names in (new["nlp"]["pipeline"], new["nlp"]["disabled"], *trained):
            if name in names:
                names.remove(name)
        note(f"{name}: removed, because nothing listens to it any more")
    pretrained = new["pretraining"].get("component")
    if pretrained in {*unused, *(path[1] for path in changed)}:
        raise ValueError(
            f"[pretraining] is for token vectors of '{pretrained}', which ELMo changes: remove it."
        )
