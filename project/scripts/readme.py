"""The results of a run in the project's README: its table and its pictures."""

from __future__ import annotations

import shutil
from pathlib import Path

import typer
from wasabi import msg

README, PICTURES = Path("README.md"), Path("pictures")
START, END = "<!-- RESULTS START -->\n", "<!-- RESULTS END -->"


def main(run: Path) -> None:
    """Replace the results in README.md, and copy the pictures beside it."""
    PICTURES.mkdir(exist_ok=True)
    for name in ("scores", "mixes"):
        shutil.copyfile(run / f"{name}.svg", PICTURES / f"{name}.svg")
    table = (run / "scores.md").read_text(encoding="utf-8")
    before, _, rest = README.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{START}{table}{END}{after}", encoding="utf-8")
    msg.good("Updated the results", str(README))


if __name__ == "__main__":
    typer.run(main)
