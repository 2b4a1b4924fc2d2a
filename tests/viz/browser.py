"""What a real browser makes of a page: headless Chromium, on a phone and on a desktop."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
         "chrome-headless-shell", "headless_shell", "msedge", "microsoft-edge")  # fmt: skip
PHONE, DESKTOP = 390, 1280  # pixels
SECONDS = 180  # until a browser is given up
MEASURE = Path(__file__).with_name("measure.js")


def find_chromium() -> str | None:
    """The program that the variable CHROMIUM names, or the first of `NAMES` that is installed."""
    named = os.environ.get("CHROMIUM")
    return next(filter(None, map(shutil.which, [named] if named else NAMES)), None)


def open_pages(folder: Path, pages: dict[str, str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Measure pages of HTML, each at the width of a phone and of a desktop.

    Headless Chromium has no narrow windows; a frame is as good, since a page sees its width alone.

    Returns:
        what `measure.js` found, two for each page; and what was written to the console.
    """
    frames = []
    for number, (name, page) in enumerate(pages.items()):
        file = folder / f"page{number}.html"
        file.write_text(page, encoding="utf-8")
        frames += [
            f'<iframe name="{name}" src="{file.as_uri()}" '
            f'style="width:{width}px;height:800px;border:0"></iframe>'
            for width in (PHONE, DESKTOP)
        ]
    outer = folder / "frames.html"
    outer.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"/><script>{MEASURE.read_text()}</script>\n'
        f'{"".join(frames)}\n<pre id="findings"></pre>\n',
        encoding="utf-8",
    )
    command = [
        str(find_chromium()), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        f"--user-data-dir={folder / 'profile'}", "--window-size=1400,1000",
        "--enable-logging=stderr", "--allow-file-access-from-files",
        "--virtual-time-budget=20000", "--dump-dom", outer.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8",
                          timeout=SECONDS, check=True)  # fmt: skip
    found = re.search(r'<pre id="findings">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(unescape(found[1])), console
