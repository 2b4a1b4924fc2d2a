#!/usr/bin/env bash
# The wheel as a newcomer gets it: installed with its own dependencies into a fresh virtual
# environment, used from a directory outside the checkout.
#
#     tests/smoke_wheel.sh PYTHON WHEEL        PIP_ARGS: more arguments for pip install
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="$1"
wheel="$(realpath "$2")"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/venv"
bin="$work/venv/bin"
[[ -d "$bin" ]] || bin="$work/venv/Scripts" # on Windows
# shellcheck disable=SC2086  # PIP_ARGS is several words
"$bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
    --constraint "$root/constraints.txt" ${PIP_ARGS:-} "$wheel"

unset PYTHONPATH SPACY_ELMO_DATA
mkdir "$work/elsewhere"
cd "$work/elsewhere"
"$bin/python" - "$root" "$wheel" <<'PYTHON'
import re
import sys
from importlib.metadata import metadata
from pathlib import Path

import numpy
import spacy

nlp = spacy.blank("en")
elmo = nlp.add_pipe("elmo")
text = "She sat on the bank of the river and counted her money."
doc = nlp(text)
assert doc.tensor.shape == (len(doc), elmo.bilm.config.width), doc.tensor.shape
assert doc.tensor.any(axis=1).all(), "a word has no vector"

nlp.to_disk("pipeline")
again = spacy.load("pipeline")(text)
numpy.testing.assert_allclose(again.tensor, doc.tensor, rtol=0, atol=1e-5)

of_words = spacy.blank("en")
of_words.add_pipe("elmo_surprisal")
assert all(token._.surprisal > 0 for token in of_words(text)), "a word has no surprisal"

for saved in sorted(Path(sys.argv[1], "tests", "fixtures", "saved").iterdir()):  # by each release
    expected = numpy.load(saved / "expected.npz")
    [first, *_] = spacy.load(saved).pipe(["The bank of the river."])
    numpy.testing.assert_allclose(
        first.tensor, expected["vectors"][: len(first)], rtol=0, atol=1e-5
    )
    assert [token.tag_ for token in first] == expected["tags"].tolist()[: len(first)]

readme = Path(sys.argv[1], "README.md").read_text(encoding="utf-8")
names = {"nlp": spacy.blank("en")}
for snippet in re.findall(r"^```python\n(.*?)^```$", readme, flags=re.MULTILINE | re.DOTALL):
    exec(snippet, names)
assert names["doc"].tensor.shape == (15, 256), names["doc"].tensor.shape

import spacy_elmo

assert Path(sys.argv[1]) not in Path(spacy_elmo.__file__).parents, spacy_elmo.__file__
from spacy_elmo.cli.info import describe

kernel = describe("en_sm")["vectors"]["kernel"]
assert (kernel is None) == sys.argv[2].endswith("-any.whl"), kernel
assert metadata("spacy-elmo")["License-Expression"] == "MIT AND CC-BY-SA-4.0"
print(f"spacy-elmo {metadata('spacy-elmo')['Version']}: {doc.tensor.shape}, the same after a reload; {kernel}")
PYTHON
"$bin/python" -m spacy elmo --help >help.txt
grep -q demo help.txt
"$bin/python" -m spacy elmo demo >demo.txt
grep -q "Filling the blanks" demo.txt
echo "The wheel works ($(du -h "$wheel" | cut -f1))"
