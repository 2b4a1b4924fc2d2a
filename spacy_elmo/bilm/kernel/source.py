"""The paths of the library and of its source. setup.py runs this file before torch is there."""

import sys
from hashlib import blake2b
from pathlib import Path

FOLDER = Path(__file__).parent
SOURCES = [FOLDER / "kernel.c", FOLDER / "body.h", FOLDER / "training.h"]
SUFFIXES = {"win32": ".dll", "darwin": ".dylib"}
LIBRARY = FOLDER / f"kernel{SUFFIXES.get(sys.platform, '.so')}"


def source_hash() -> str:
    """A hash of the source, which the library that was built from it returns."""
    texts = (path.read_bytes().replace(b"\r\n", b"\n") for path in SOURCES)
    return blake2b(b"\0".join(texts), digest_size=8).hexdigest()
