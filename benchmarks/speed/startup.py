"""What the plugin adds to the start of spaCy, and how long the first vectors take.

    python benchmarks/speed/startup.py [--times 7]

Starts fresh processes and takes medians of their processor time, so that other work on the machine
matters little: of ``import spacy``, of what ``spacy.blank`` imports of this package on top (all
modules that its entry points name), of ``import spacy_elmo`` alone, and of the first vectors from
the embedded weights after that.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys

CHILD = """
import json, time
from importlib.metadata import distribution
clock = time.process_time
times = {}

def lap(name):
    global before
    times[name] = clock() - before
    before = clock()

before = clock()
import spacy_elmo
lap("import spacy_elmo")
import spacy
lap("import spacy")
for point in distribution("spacy-elmo").entry_points:
    if point.group.startswith(("spacy_", "thinc_")) and point.group != "spacy_cli":
        point.load()
lap("the plugin")
nlp = spacy.blank("en")
lap("the rest of spacy.blank")
nlp.add_pipe("elmo")
lap("add_pipe")
nlp("The bank raised its rates.")
lap("first vectors")
print(json.dumps(times))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="How long the plugin takes to start.")
    parser.add_argument("--times", type=int, default=7)
    arguments = parser.parse_args()
    runs = []
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # modules are compiled only once
    for _ in range(arguments.times + 1):
        child = subprocess.run(
            [sys.executable, "-c", CHILD], stdout=subprocess.PIPE, env=environment, check=True
        )
        runs.append(json.loads(child.stdout))
    del runs[0]  # which may have compiled them
    for name in runs[0]:
        values = [1000 * run[name] for run in runs]
        print(f"{name:24} {statistics.median(values):8.1f} ms  (least {min(values):.1f})")


if __name__ == "__main__":
    main()
