"""Sections of settings that check their own values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from typing import Any, ClassVar, get_args, get_origin, get_type_hints


def setting(default: Any, is_valid: Callable[[Any], bool], advice: str) -> Any:
    """A setting with its default, the values it may have, and the advice for any other."""
    return field(default=default, metadata={"is_valid": is_valid, "advice": advice})


def at_least(least: int, default: int) -> Any:
    return setting(default, lambda n: n >= least, f"give a whole number of at least {least}")


def above_zero(default: float) -> Any:
    return setting(default, lambda x: x > 0, "give a number above 0")


def one_of(*choices: str) -> Any:
    """A choice; the first is the default."""
    known = ", ".join(f'"{choice}"' for choice in choices)
    return setting(choices[0], lambda choice: choice in choices, f"known are {known}")


class Section:
    """The base of all sections: checks the types and values of their settings.

    Raises:
        ValueError: a setting has the wrong type or value.
    """

    title: ClassVar[str]

    def __post_init__(self) -> None:
        types = get_type_hints(type(self))
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            wanted = get_args(types[item.name]) or (types[item.name],)
            kinds = [get_origin(kind) or kind for kind in wanted]
            if float in kinds:
                kinds.append(int)
            is_bool = isinstance(value, bool) and bool not in kinds
            if is_bool or not isinstance(value, tuple(kinds)):
                names = ("null" if kind is type(None) else kind.__name__ for kind in kinds)
                raise self.error(item.name, f"expected {' or '.join(names)}")
            if isinstance(value, list) and not all(isinstance(text, str) for text in value):
                raise self.error(item.name, "expected strings")
            if "is_valid" in item.metadata and not item.metadata["is_valid"](value):
                raise self.error(item.name, item.metadata["advice"])

    def error(self, name: str, advice: str) -> ValueError:
        return ValueError(f"Config: [{self.title}] {name} is {getattr(self, name)!r}; {advice}.")
