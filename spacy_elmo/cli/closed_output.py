"""A clear error if the standard output cannot be written."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup


class Commands(TyperGroup):
    """Prints one line, instead of a traceback, if the standard output is full or was closed."""

    def invoke(self, ctx: Any) -> Any:
        try:
            try:
                return super().invoke(ctx)
            finally:
                if sys.stdout is not None:  # None after `>&-`
                    sys.stdout.flush()
        except OSError as error:  # commands report errors of their files themselves
            # Python flushes the standard output when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            print(f"Cannot write the output: {error.strerror}", file=sys.stderr)
            raise typer.Exit(1) from None
