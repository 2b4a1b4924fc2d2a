"""What is imported before it is needed."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import spacy
before = set(sys.modules)
import spacy_elmo
print(*sorted(set(sys.modules) - before))
spacy.blank("en")
print(*sorted(set(sys.modules) - before))
"""
HEAVY = {
    "datasets", "h5py", "matplotlib", "numba", "pandas", "pyarrow", "pyspark", "ray", "scipy",
    "sklearn", "tqdm", "transformers"
}  # fmt: skip
LATER = ("cli", "encoding", "lm", "pretraining", "bilm.published")


def test_imports_of_a_blank_pipeline() -> None:
    """Of what spaCy itself has not imported: nothing with the package, and little with a
    blank pipeline, which imports the factories of all plugins."""
    command = [sys.executable, "-c", SCRIPT]
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    at_first, with_pipeline = (line.split() for line in output.splitlines())
    assert at_first == ["spacy_elmo", "spacy_elmo.about"]
    assert "spacy_elmo.pipeline.component" in with_pipeline
    assert not HEAVY & {name.partition(".")[0] for name in with_pipeline}
    ours = [name.removeprefix("spacy_elmo.") for name in with_pipeline if "spacy_elmo." in name]
    assert [name for name in ours if name.startswith(LATER)] == []
    torch = [name for name in with_pipeline if name.startswith("torch.")]
    assert len(torch) < 20, torch  # PyTorch's compiler and exporter are hundreds


def test_what_the_package_shows() -> None:
    import spacy_elmo

    shown = dir(spacy_elmo)
    assert {"Encoder", "LanguageModel", "add_elmo", "encode", "find_senses", "mixes"} <= {*shown}
    assert all(hasattr(spacy_elmo, name) for name in shown)
    assert {name for name in shown if name.startswith("_")} == {"__version__"}
    assert not {"LAZY", "annotations", "import_module"} & {*shown}
