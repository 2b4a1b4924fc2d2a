"""ELMo put into the config of any pipeline: `spacy_elmo.add_elmo` and `spacy elmo add`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from spacy.language import DEFAULT_CONFIG
from spacy.util import (
    copy_config,
    get_lang_class,
    get_sourced_components,
    load_model_from_config,
)
from thinc.api import Config

from ..weights.find import WeightsNotFoundError, find_weights
from .config_blocks import Block, find_blocks, get_block, rename_variables, replace_variables
from .config_token_vectors import (
    Place,
    find_bags_of_words,
    find_classifiers,
    find_elmo,
    find_listened_to,
    find_places,
    has_elmo,
)
from .elmo_model import ELMO_MODEL
from .errors import warn_of_language, warn_of_tokenizer
from .recipes import (
    EMBED_AND_ENCODE,
    FINE_TUNING_RATE,
    PARTS_OF_DOCS,
    TEXTCAT_LINEAR,
    make_classifier,
    make_recipe,
)
from .settings import BiLMSettings

TRANSFORMERS = ("spacy-transformers.", "spacy-curated-transformers.")
BATCH_SIZE = 128  # Docs, whose layers are in memory together; spaCy's default is 1000

Note = Callable[[str], None]


def add_elmo(
    config: Block,
    *,
    weights: str | Path | Sequence[str | Path] | None = None,
    frozen: bool | None = None,
    light: bool = False,
    note: Note = lambda line: None,
) -> Config:
    """Let all components of a config learn from ELMo that can.

    A component can if its model has token vectors: a block ``tok2vec``, or one of an architecture
    of spaCy's. Frozen and sourced components stay as they are, and so do those that learn from
    ELMo already.

    Args:
        config: of spaCy, complete or not. It is not changed.
        weights: of the biLM; None for those in the config, or for ``en_sm``.
        frozen: whether the biLM is frozen; None for what the config says, or for True. If it is
            to be trained, its learning rate becomes a tenth of the tasks'.
        light: give components a listener alone, without an embedding and an encoder.
        note: called with a line of text for each change.

    Returns:
        The complete config.

    Raises:
        ValueError: no component can learn from ELMo; the config has a transformer, or a listener
            or a pretraining that ELMo would break; it is not valid; or the weights cannot be
            found.
    """
    refuse_transformers(config)
    sourced = get_sourced_components(config)
    new = fill(config)
    refuse_transformers(new)  # of the sourced
    old = new.interpolate()
    kept = {*sourced, *old["training"]["frozen_components"]}
    classifiers = [name for name in find_classifiers(old) if name not in kept]
    lacking = classifiers if not light and not has_statistics(old, weights) else []
    if light or lacking:
        classifiers = []
    found = find_places(old, classifiers)
    places = [place for place in found if place.component not in kept]
    shared = ", ".join(sorted(find_listened_to(old, kept)))
    unread = [
        place.component
        for place in places
        if shared
        and old["components"][place.component]["factory"] in PARTS_OF_DOCS
        and not has_elmo(old, place.component, place.block)
    ]
    places = [place for place in places if place.component not in unread]
    reason = (
        f"{', '.join(unread)}: stays, because it would read doc.tensor, which '{shared}' replaces: "
        f"frozen or sourced components listen to that (give them replace_listeners)"
    )
    stay = {*kept, *classifiers}
    bags = [name for name in find_bags_of_words(old) if name not in stay]
    if not places:
        lack = "none that is to be trained has token vectors (a block tok2vec) in its model"
        raise ValueError(
            f"No component can learn from ELMo: {reason if unread else lack}. Pipeline: "
            f"{', '.join(old['nlp']['pipeline'])}."
            + (" A classifier needs weights with statistics, and not --light." if bags else "")
        )
    without = [place for place in places if not has_elmo(old, place.component, place.block)]
    if without:
        check_sources(old, without)
        replace_variables(new, old, {".".join(place.path) for place in without})
        put_elmo_first(new, without, note)
    set_bilm(new, sourced, weights, frozen, note)
    if without:
        write_recipes(new, old, without, classifiers, light, note)
        remove_unheard(new, without, note)
    changed = {place.component for place in without}
    if without:
        if unread:
            note(reason)
        if bags:
            note(f"{', '.join(bags)}: stays a bag of words, which has no token vectors")
        if names := ", ".join(name for name in lacking if name in {*bags, *changed}):
            note(
                f"{names}: would get {TEXTCAT_LINEAR} if the weights were found and had statistics "
                f"(`elmo convert … --statistics TEXT`)"
            )
        check_language(new.interpolate())
    new = fill(new)
    components = new["components"]
    components.update({name: sourced[name] for name in sourced if name in components})
    return new


def fill(config: Block) -> Config:
    """A config with all defaults, as `spacy init fill-config` makes it; it keeps its variables."""
    filled = load_model_from_config(config, auto_fill=True, validate=False).config
    return load_model_from_config(copy_config(filled)).config  # the same, validated


def refuse_transformers(config: Block) -> None:
    for name, component in config.get("components", {}).items():
        for _, block in find_blocks(component):
            kind = str(block.get("@architectures"))
            if kind.startswith(TRANSFORMERS):
                raise ValueError(
                    f"The component '{name}' has a transformer ('{kind}'). ELMo is for pipelines "
                    f"without one."
                )


def check_sources(config: Block, places: Sequence[Place]) -> None:
    """Raise a ValueError if what ELMo takes the place of is unknown, or pretrained."""
    components, pretrained = config["components"], config["pretraining"].get("component")
    for place in places:
        factory = components.get(place.source, {}).get("factory")
        if place.is_shared and factory != "tok2vec":
            raise ValueError(
                f"The component '{place.component}' listens to '{place.source}', which is no "
                f"'tok2vec' component of the pipeline: ELMo cannot take its place."
            )
        if pretrained in (place.source, place.component):
            raise ValueError(
                f"[pretraining] is for the token vectors of '{pretrained}', whose place ELMo "
                f"takes: remove that block, and init_tok2vec in [initialize]."
            )


def put_elmo_first(new: Config, places: Sequence[Place], note: Note) -> None:
    """Add the component; one that is there already has to be before all that listen to it."""
    components, pipeline = new["components"], new["nlp"]["pipeline"]
    name = find_elmo(new)
    if name is None:
        if "elmo" in components:
            raise ValueError("Another component than ELMo's has the name 'elmo': rename it.")
        model = {"@architectures": ELMO_MODEL, **asdict(BiLMSettings())}
        components["elmo"] = {"factory": "elmo", "model": model}
        pipeline.insert(0, "elmo")
        note("elmo: added, first in the pipeline")
    elif pipeline.index(name) > min(pipeline.index(place.component) for place in places):
        pipeline.remove(name)
        pipeline.insert(0, name)
        note(f"{name}: now first in the pipeline")
    training = new.interpolate()["training"]
    if name in training["frozen_components"] and name not in training["annotating_components"]:
        annotating = [*training["annotating_components"], name]
        new["training"]["annotating_components"] = annotating
        note(f"{name}: one of the annotating_components now, because it is frozen and listened to")
    if new["nlp"]["batch_size"] == DEFAULT_CONFIG["nlp"]["batch_size"]:
        new["nlp"]["batch_size"] = BATCH_SIZE
        note(f"[nlp] batch_size: {BATCH_SIZE}, because the layers of a batch take memory")


def write_recipes(
    new: Config,
    old: Config,
    places: Sequence[Place],
    classifiers: Collection[str],
    light: bool,
    note: Note,
) -> None:
    """Put a recipe into each place, and note which components have which."""
    components, elmo = new["components"], str(find_elmo(new))
    recipes: dict[str, list[str]] = {}
    for place in places:
        block = get_block(old, place.source_path)
        variables = get_block(new, place.source_path)
        if block.get("@architectures") in EMBED_AND_ENCODE and isinstance(variables, dict):
            before, after = ".".join(place.source_path), ".".join(place.path)
            block = rename_variables(variables, before, after)
        factory = components[place.component]["factory"]
        if factory in PARTS_OF_DOCS:
            weights = new.interpolate()["components"][elmo]["model"]["weights"]
            components[elmo]["model"]["width"] = find_weights(weights).config().width
        if place.component in classifiers:
            recipe, what = make_classifier(factory, old["initialize"]["vectors"], elmo)
        else:
            recipe, what = make_recipe(factory, block, elmo, light)
        if old["initialize"]["vectors"] is None:
            for _, part in find_blocks(recipe):
                if part.get("include_static_vectors"):
                    part["include_static_vectors"] = False
                    what += ", without static vectors ([initialize] vectors is null)"
        get_block(new, place.path[:-1])[place.path[-1]] = recipe
        recipes.setdefault(what, []).append(place.component)
    for what, names in recipes.items():
        note(f"{', '.join(dict.fromkeys(names))}: {what}")


def has_statistics(config: Block, weights: str | Path | Sequence[str | Path] | None) -> bool:
    """Return whether the weights, or those of a config, know how frequent words are."""
    if weights is not None:
        return find_weights(weights).statistics() is not None
    model = config["components"].get(find_elmo(config), {}).get("model", {})
    with suppress(WeightsNotFoundError):  # a trained pipeline contains its own
        weights = model.get("weights", BiLMSettings().weights)
        return find_weights(weights).statistics() is not None
    return False


def remove_unheard(new: Config, places: Sequence[Place], note: Note) -> None:
    """Remove each `tok2vec` that had listeners, and has none any more."""
    plain = new.interpolate()
    listened_to = find_listened_to(plain, plain["nlp"]["pipeline"])
    for name in dict.fromkeys(place.source for place in places if place.is_shared):
        if name in listened_to:
            continue
        replace_variables(new, plain, {f"components.{name}"})
        del new["components"][name], plain["components"][name]
        new["initialize"]["components"].pop(name, None)
        nlp, training = new["nlp"], new["training"]
        for names in (
            nlp["pipeline"], nlp["disabled"],
            training["frozen_components"], training["annotating_components"],
        ):  # fmt: skip
            if name in names:
                names.remove(name)
        note(f"{name}: removed, because nothing listens to it any more")


def set_bilm(
    new: Config,
    sourced: Block,
    weights: str | Path | Sequence[str | Path] | None,
    frozen: bool | None,
    note: Note,
) -> None:
    """Set which biLM is used, and whether it is trained."""
    name = find_elmo(new)
    if weights is None and frozen is None:
        return
    if name is None or name in sourced:
        raise ValueError("The biLM cannot be set: no elmo component is made by the config itself.")
    model = new["components"][name]["model"]
    if weights is not None:
        given = str(weights) if isinstance(weights, str | Path) else [str(path) for path in weights]
        width = find_weights(weights).config().width
        if model["width"] is not None:
            model["width"] = width
        if model["weights"] != given:
            model["weights"] = given
            note(f"{name}: the weights are {given}")
    if frozen is not None and model["frozen"] != frozen:
        model["frozen"], model["learn_rate_factor"] = frozen, 1.0 if frozen else FINE_TUNING_RATE
        rate = f"trained, at {FINE_TUNING_RATE} of the learning rate"
        note(f"{name}: {'frozen' if frozen else rate}")


def check_language(config: Config) -> None:
    """Warn if the biLM has read another language than the pipeline's, or other words."""
    name = str(find_elmo(config))
    weights = config["components"][name]["model"]["weights"]
    with suppress(WeightsNotFoundError):  # a trained pipeline contains its own
        card, block = find_weights(weights).card(), f"[components.{name}.model]"
        warn_of_language(config["nlp"]["lang"], card, weights, block)
        nlp = config["nlp"]
        own = nlp["tokenizer"]["@tokenizers"]
        warn_of_tokenizer(get_lang_class(nlp["lang"]), own, card, weights)
