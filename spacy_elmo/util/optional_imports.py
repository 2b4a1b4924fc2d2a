"""Imports of libraries that an extra of this package installs."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def require_extra(module: str, extra: str, need: str, file: str) -> None:
    """Check that an optional library is installed, without importing it.

    Args:
        module: a module of the library.
        extra: the extra that installs the library.
        need: what needs which library, for the error message.
        file: the file to read or write, for the error message.

    Raises:
        ValueError: the library is not installed.
    """
    if find_spec(module.partition(".")[0]) is None:
        raise ValueError(f"{file}: {need}. Install it with: pip install 'spacy-elmo[{extra}]'")


def import_extra(module: str, extra: str, need: str, file: str) -> Any:
    """Import a module of an optional library; arguments and errors as of `require_extra`."""
    require_extra(module, extra, need, file)
    return import_module(module)
