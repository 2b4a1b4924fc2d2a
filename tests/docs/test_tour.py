"""The notebook runs from its first cell to its last, and shows what it should."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

TOUR = Path(__file__).parents[2] / "docs" / "tour.ipynb"


@pytest.mark.slow
def test_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    # A kernel of this interpreter, whatever others are installed.
    kernel = tmp_path / "kernels" / "python3"
    kernel.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(TOUR, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": tmp_path}}
    ).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    stray = [o for o in outputs if o.output_type == "stream" and o.name == "stderr"]
    assert not stray
    pictures = [o for o in outputs if "<svg" in o.get("data", {}).get("text/html", "")]
    assert len(pictures) >= 3
    tags = next(o for o in outputs if "PRON" in o.get("data", {}).get("text/plain", ""))
    assert "('play', 'VERB'), ('the', 'DET'), ('play', 'NOUN')" in " ".join(
        tags["data"]["text/plain"].split()
    )
    # What is stored in the repository is a run of the same cells.
    stored = json.loads(TOUR.read_text(encoding="utf-8"))
    kinds = [[o["output_type"] for o in c["outputs"]] for c in stored["cells"] if "outputs" in c]
    assert kinds == [[output.output_type for output in cell.outputs] for cell in cells]
