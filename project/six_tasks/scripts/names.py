"""The names that a run is given."""

from __future__ import annotations

from collections.abc import Collection


def choose(setting: str, names: str, known: Collection[str]) -> list[str]:
    """The names in a list separated by commas; one may have a comma itself.

    Args:
        setting: of the project, in the error.
        names: the list.
        known: what may be in it.

    Raises:
        ValueError: one is unknown.
    """
    found: list[str] = []
    while names or not found:
        fits = [name for name in known if f"{names},".startswith(f"{name},")]
        name = max(fits, key=len, default=names.partition(",")[0])
        if name not in known:
            raise ValueError(
                f"--vars.{setting}: there is no {name!r}. Choose from: {'; '.join(known)}."
            )
        found.append(name)
        names = names[len(name) + 1 :].strip()
    return found
