"""Libraries that come with an extra of this package, imported where they are needed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def import_extra(module: str, extra: str, need: str, file: str) -> Any:
    """A module of a library that an extra brings.

    Args:
        module: its full name.
        extra: name of the extra.
        need: what needs which library, for the error message.
        file: the one to read or write, for the error message.

    Raises:
        ValueError: the library is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        raise missing(extra, need, file) from None


def require_extra(module: str, extra: str, need: str, file: str) -> None:
    """`import_extra` of what is needed later: it is looked for, which takes no time.

    Raises:
        ValueError: the library is not installed.
    """
    if find_spec(module) is None:
        raise missing(extra, need, file)


def missing(extra: str, need: str, file: str) -> ValueError:
    """The error for a library that is not installed."""
    return ValueError(f"{file}: {need}. Install it with: pip install 'spacy-elmo[{extra}]'")
