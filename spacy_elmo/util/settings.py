"""Dataclasses of settings that check their own types and values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, field, fields
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

FLOAT32_MAX = 3.4e38


# Cached, for some classes have an instance for each batch.
_type_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


def setting(is_valid: Callable[[Any], bool], advice: str, default: Any = MISSING) -> Any:
    """A setting: the values it may have, the advice for any other, and its default, if any."""
    return field(default=default, metadata={"is_valid": is_valid, "advice": advice})


def at_least(least: float, default: Any = MISSING) -> Any:
    return setting(lambda n: n >= least, f"give a number of at least {least}", default)


def in_range(least: int, most: int, default: Any = MISSING) -> Any:
    advice = f"give a whole number from {least} to {most:,}"
    return setting(lambda n: least <= n <= most, advice, default)


def above_zero(default: Any = MISSING) -> Any:
    return setting(
        lambda x: 0 < x < FLOAT32_MAX, f"give a number above 0 and below {FLOAT32_MAX}", default
    )


def below_one(default: Any = MISSING) -> Any:
    return setting(lambda x: 0 <= x < 1, "give a number from 0 to below 1", default)


def one_of(*choices: str) -> Any:
    """A choice; the first is the default."""
    return setting(lambda choice: choice in choices, _known(choices), choices[0])


def check_choice(what: str, value: Any, choices: Iterable[str]) -> None:
    """Raise a ValueError if a setting that stands alone is none of its choices."""
    if value not in choices:
        raise ValueError(f"{what} is {shorten(value)}; {_known(choices)}.")


def _known(choices: Iterable[str]) -> str:
    return "known are " + ", ".join(f'"{choice}"' for choice in choices)


class Settings:
    """The base of all dataclasses of settings: checks types and values when one is made.

    Attributes:
        title: what they belong to, the beginning of every error.

    Raises:
        ValueError: a setting has the wrong type or value.
    """

    title: ClassVar[str]

    def __post_init__(self) -> None:
        types = _type_hints(type(self))
        for item in fields(self):  # type: ignore[arg-type]
            name, value, kind = item.name, getattr(self, item.name), types[item.name]
            kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
            if not _is_instance(value, kinds):
                raise self.error(name, f"expected {' or '.join(map(_name, kinds))}")
            for kind in kinds:
                if isinstance(value, list) and get_origin(kind) is list:
                    if not all(_is_instance(each, get_args(kind)) for each in value):
                        raise self.error(name, f"expected a list of {_name(*get_args(kind))}")
            is_valid = item.metadata.get("is_valid")
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise self.error(name, "give a number of at most 64 bits")
            if is_valid is not None and value is not None and not is_valid(value):
                raise self.error(name, item.metadata["advice"])

    @classmethod
    def check_names(cls, names: Iterable[str]) -> None:
        """Raise a ValueError if one of these is not the name of a setting."""
        known = sorted(item.name for item in fields(cls))  # type: ignore[arg-type]
        unknown = sorted(set(names) - set(known))
        if unknown:
            raise ValueError(
                f"{cls.title} has unknown settings {unknown}; known are {known}. Was it written by "
                f"a newer spacy-elmo?"
            )

    def error(self, name: str, advice: str) -> ValueError:
        """The error for a setting's value."""
        return ValueError(f"{self.title} {name} is {shorten(getattr(self, name))}; {advice}.")


def _is_instance(value: Any, kinds: Iterable[Any]) -> bool:
    """`isinstance`, but a boolean is no number, and an integer of 64 bits is a float, too."""
    types = [get_origin(kind) or kind for kind in kinds]
    if isinstance(value, bool):
        return bool in types
    is_float = float in types and isinstance(value, int) and -(2**63) <= value < 2**63
    return is_float or isinstance(value, tuple(types))


def _name(kind: Any) -> str:
    return "null" if kind is type(None) else (get_origin(kind) or kind).__name__


def shorten(value: Any) -> str:
    """The repr of a value, short enough for an error message."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
