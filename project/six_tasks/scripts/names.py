"""The names that a run is given."""

from __future__ import annotations

from collections.abc import Collection

from wasabi import msg


def choose(setting: str, names: str, known: Collection[str]) -> list[str]:
    """The names in a list separated by commas; one may have a comma itself. An unknown one ends
    the program with an error.

    Args:
        setting: of the project, in the error.
        names: the list.
        known: what may be in it.
    """
    found: list[str] = []
    while names or not found:
        fits = [name for name in known if f"{names},".startswith(f"{name},")]
        name = max(fits, key=len, default=names.partition(",")[0])
        check(setting, name, known)
        found.append(name)
        names = names[len(name) + 1 :].strip()
    return found


def check(setting: str, name: str, known: Collection[str]) -> None:
    """End the program with an error if a name is unknown."""
    if name not in known:
        msg.fail(
            f"--vars.{setting}: there is no {name!r}", f"Choose from: {'; '.join(known)}", exits=1
        )
