"""Results of benchmarks as lines of JSON, by what was measured and by the weights that were.

A line is a record: its part ("tasks"), its unit (``{"task": "tagger", "size": 500, …}``), the
fingerprint of the weights that it depends on (null: none) and what was found. Lines are only
appended, so a run that was stopped is continued, and several at once may share a file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from spacy_elmo.util.files import write_text
from spacy_elmo.weights.find import WeightsLike, find_weights
from spacy_elmo.weights.layout import HEAD, META, VOCAB

Unit = dict[str, Any]
# Weights whose gates were rounded to int8 after they had been measured, and what they were then.
# `recipes.py --swap` measures what that changes.
ROUNDED = {"8cacb89e42d3": "5b815c2827b4", "c1641c2f7d57": "d4b15318437b"}  # en_sm, ko_sm


def fingerprint(weights: WeightsLike, head: WeightsLike | None = None) -> str:
    """Of the files of a biLM and its statistics; of a head too, if it is used."""

    def digest(setting: WeightsLike, heads: bool) -> str:
        found = hashlib.sha256()
        for file in sorted(find_weights(setting).files(), key=lambda file: file.name):
            if (file.name in (HEAD, VOCAB)) == heads and file.name not in (META, "README.md"):
                found.update(file.name.encode() + b"\0" + file.read_bytes())
        return found.hexdigest()[:12]

    found = digest(weights, False)
    return ROUNDED.get(found, found) + ("" if head is None else "+" + digest(head, True))


class Results:
    """Records in a file, which need not exist.

    Attributes:
        path: the file.
        records: by part and unit; of several of the same weights the last one.
    """

    def __init__(self, path: Path):
        self.path, self.size = path, -1
        self.records: dict[tuple[str, str, str | None], dict[str, Any]] = {}
        self.read()

    def read(self) -> None:
        """Read what has been added, by other processes too.

        Raises:
            ValueError: a line is not a record.
        """
        size = self.path.stat().st_size if self.path.exists() else 0
        if size == self.size:
            return
        self.size = size
        lines = self.path.read_text(encoding="utf-8").splitlines() if size else []
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                self.records[record["part"], key(record["unit"]), record["weights"]] = record
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{self.path}, line {number}, is not a result: {error}") from error

    def find(self, part: str, unit: Unit, weights: str | None) -> Any | None:
        """What was found, or None if it has not been measured."""
        record = self.records.get((part, key(unit), weights))
        return record["found"] if record else None

    def add(self, part: str, unit: Unit, weights: str | None, found: Any) -> None:
        record = {"part": part, "unit": unit, "weights": weights, "found": found}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(record, ensure_ascii=False)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        self.records[part, key(unit), weights] = json.loads(line)  # as the next process reads it

    def get(self, part: str, unit: Unit, weights: str | None, measure: Callable[[], Any]) -> Any:
        """What was found, which is measured if no process has done so yet."""
        self.read()
        if self.find(part, unit, weights) is None:
            self.add(part, unit, weights, measure())
        found = self.find(part, unit, weights)
        print(*unit.values(), found, flush=True)
        return found

    def print_means(self, part: str) -> None:
        """The means of the seeds, unit by unit."""
        seeds: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for (name, _, _), record in self.records.items():
            if name == part:
                unit = {each: x for each, x in record["unit"].items() if each != "seed"}
                seeds[", ".join(map(str, unit.values()))].append(record["found"])
        for title, found in seeds.items():
            for name in found[0]:
                means = np.mean([each[name] for each in found], axis=0)
                print(f"{title}, {name}: {means.round(1)}")

    def of(self, part: str, weights: str) -> list[tuple[Unit, Any]]:
        """Units of a part and what was found, of some weights (with any head) and of none."""
        return [
            (record["unit"], record["found"])
            for (name, _, fingerprint), record in self.records.items()
            if name == part and is_of(fingerprint, weights)
        ]

    def keep(self, weights: str) -> None:
        """Write the file anew with the records of some weights and of none, in order."""
        self.read()
        self.records = {k: r for k, r in self.records.items() if is_of(k[2], weights)}
        chosen = sorted(self.records.items(), key=lambda item: (item[0][:2], item[0][2] or ""))
        lines = (json.dumps(record, ensure_ascii=False) for _, record in chosen)
        write_text(self.path, "".join(f"{line}\n" for line in lines))
        self.size = self.path.stat().st_size


def make_parser(title: str, seeds: int = 3) -> argparse.ArgumentParser:
    """The options that scripts have in common."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("out", type=Path, help="a file, to which results are added")
    parser.add_argument("--data", type=Path, required=True, help="see benchmarks/README.md")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(seeds)))
    return parser


def is_of(fingerprint: str | None, weights: str) -> bool:
    """Whether a record is of some weights, with any head, or of none."""
    return fingerprint is None or fingerprint.partition("+")[0] == weights


def key(unit: Unit) -> str:
    return json.dumps(unit, sort_keys=True, ensure_ascii=False)
