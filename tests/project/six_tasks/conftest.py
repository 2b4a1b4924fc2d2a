"""The project's package, imported as its scripts import it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "project" / "six_tasks"))
