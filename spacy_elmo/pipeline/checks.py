"""What is checked of an elmo component together with those that listen to it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from .listener import ElmoListener
from .scalar_mix import Settings

if TYPE_CHECKING:
    from .component import Elmo


def check_widths(elmo: Elmo) -> None:
    """Raise a ValueError if one of spaCy's listeners expects vectors of another size."""
    for component, listeners in elmo.listener_map.items():
        for listener in listeners:
            width = listener.get_dim("nO")
            if not isinstance(listener, ElmoListener) and width != elmo.shim.config.width:
                raise ValueError(
                    f"The listener in the component '{component}' has the setting width = "
                    f"{width}, but the vectors of '{elmo.name}' have "
                    f"{elmo.shim.config.width} numbers. Set it to {elmo.shim.config.width}."
                )


def warn_of_settings_without_effect(elmo: Elmo) -> None:
    """Say which settings are about learning where nothing can be learned."""
    mix: Settings = elmo.model.get_ref("mix").attrs["settings"]
    without_effect = []
    if not elmo.shim.settings.frozen and not elmo.listener_map:
        without_effect.append(
            "model.frozen = false: no component listens to this one. Give the model of one a "
            "spacy-elmo.ElmoListener.v1, or set frozen = true"
        )
    for name in ("dropout", "l2"):
        if getattr(mix, name) and not elmo.tok2vec_listeners:
            without_effect.append(
                f"model.mix.{name} = {getattr(mix, name)}: no spacy.Tok2VecListener.v1 learns "
                f"from this mix. A spacy-elmo.ElmoListener.v1 has a mix of its own, and such "
                f"settings"
            )
    for problem in without_effect:
        warnings.warn(
            f"A setting of the component '{elmo.name}' has no effect: {problem}.",
            UserWarning,
            stacklevel=3,
        )
