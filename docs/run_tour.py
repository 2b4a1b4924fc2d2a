"""Run the notebook, so that it shows what its cells give today.

python docs/run_tour.py
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat

TOUR = Path(__file__).with_name("tour.ipynb")


def run() -> Any:
    """The notebook with new outputs, by a kernel of this interpreter in an empty folder."""
    notebook = nbformat.read(TOUR, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        kernel = Path(folder, "kernels", "python3")
        kernel.mkdir(parents=True)
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec = {"argv": command, "display_name": "Python 3", "language": "python"}
        (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
        os.environ |= {"JUPYTER_PATH": folder, "OMP_NUM_THREADS": "1"}
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(
            notebook, timeout=600, resources=resources, record_timing=False
        ).execute()
    notebook.metadata.language_info = {"name": "python"}
    return notebook


if __name__ == "__main__":
    nbformat.write(run(), TOUR)
