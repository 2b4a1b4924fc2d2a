"""Imports of libraries that an extra of this package installs."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def import_extra(module: str, extra: str, need: str, file: str) -> Any:
    """Import a module of an optional library.

    Args:
        module: the module's full name.
        extra: the extra that installs the library.
        need: what needs which library, for the error message.
        file: the file to read or write, for the error message.

    Raises:
        ValueError: the library is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        raise missing(extra, need, file) from None


def require_extra(module: str, extra: str, need: str, file: str) -> None:
    """Check that an optional library is installed, without importing it; see `import_extra`.

    Raises:
        ValueError: the library is not installed.
    """
    if find_spec(module) is None:
        raise missing(extra, need, file)


def missing(extra: str, need: str, file: str) -> ValueError:
    """The error for a library that is not installed."""
    return ValueError(f"{file}: {need}. Install it with: pip install 'spacy-elmo[{extra}]'")
