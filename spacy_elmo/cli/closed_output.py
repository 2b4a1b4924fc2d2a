"""Commands that end in one line where the standard output is full or closed."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup


class Commands(TyperGroup):
    """Ends in one line where the standard output is full, or a pipe that was closed."""

    def invoke(self, ctx: Any) -> Any:
        try:
            try:
                return super().invoke(ctx)
            finally:
                if sys.stdout is not None:  # closed by `>&-`
                    sys.stdout.flush()
        except OSError as error:  # others are reported by the commands
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for Python's end
            print(f"Cannot write the output: {error.strerror}", file=sys.stderr)
            raise typer.Exit(1) from None
