"""Dataclasses of settings that check their own types and values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, field, fields
from functools import cache, partial
from typing import Annotated, Any, ClassVar, Literal, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError


def option(default: Any = MISSING, kind: Any = None, **limits: Any) -> Any:
    """A field of a `Settings` dataclass.

    Args:
        default: its default value; none if it must be given.
        kind: a narrower type than the annotation.
        limits: limits of its value, as pydantic's `Field` takes them.
    """
    return field(default=default, metadata={"kind": kind, "limits": Field(**limits)})


def at_least(least: int, default: Any = MISSING) -> Any:
    return option(default, ge=least, le=2**63 - 1)


def in_range(least: int, most: int, default: Any = MISSING) -> Any:
    return option(default, ge=least, le=most)


above_zero = partial(option, gt=0, le=1e9)  # its products with float32 stay finite
below_one = partial(option, ge=0, lt=1)


def one_of(*choices: str) -> Any:
    """A choice; the first is the default."""
    return option(choices[0], Literal[choices])


def check_choice(what: str, value: Any, choices: Iterable[str]) -> None:
    """Raise a ValueError if a value is none of the choices, for a setting without a dataclass."""
    if value not in choices:
        raise ValueError(f"{what} is {shorten(value)}; known are {', '.join(map(repr, choices))}.")


class Settings:
    """Base class of dataclasses of settings; the constructor checks types and values.

    Attributes:
        title: names the settings at the beginning of each error.

    Raises:
        ValueError: a setting has the wrong type or value.
    """

    title: ClassVar[str]

    def __post_init__(self) -> None:
        for name, kind in _kinds(type(self)).items():  # type: ignore[arg-type]
            try:
                value = kind.validate_python(getattr(self, name), strict=True)
            except ValidationError as error:
                said = [each["msg"].replace("Input should", "it must") for each in error.errors()]
                raise self.error(name, " or ".join(dict.fromkeys(said))) from None
            object.__setattr__(self, name, value)

    @classmethod
    def check_names(cls, names: Any) -> None:
        """Raise a ValueError if a name, or a key of an object that was read, is no setting."""
        if not isinstance(names, Iterable):
            raise ValueError(f"{cls.title} expected settings by name, found {shorten(names)}.")
        known = sorted(item.name for item in fields(cls))  # type: ignore[arg-type]
        if unknown := sorted({*map(str, names)} - {*known}):
            raise ValueError(
                f"{cls.title} has unknown settings {unknown}; known are {known}. Was it written by "
                f"another version of spacy-elmo?"
            )

    def error(self, name: str, advice: str) -> ValueError:
        """The error for a setting's value."""
        return ValueError(f"{self.title} {name} is {shorten(getattr(self, name))}; {advice}.")


@cache
def _kinds(cls: Any) -> dict[str, TypeAdapter[Any]]:
    """The type and the limits of each setting in a class."""
    hints, kinds = get_type_hints(cls), {}
    for item in fields(cls):
        kind: Any = item.metadata.get("kind") or hints[item.name]
        kinds[item.name] = TypeAdapter(Annotated[kind, item.metadata.get("limits")])
    return kinds


def shorten(value: Any) -> str:
    """The repr of a value, short enough for an error message."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
