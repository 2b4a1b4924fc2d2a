"""The scripts of benchmarks/, imported as they import each other, and small data for them."""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from ..pretraining.helpers import PROSE

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.extend(str(BENCHMARKS / folder) for folder in ("quality", "speed", "reliability"))

CONLLU = """\
1\tShe\tshe\tPRON\tPRP\t_\t2\tnsubj\t_\t_
2\tsang\tsing\tVERB\tVBD\tTense=Past\t0\troot\t_\t_
3\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_
2\tbark\tbark\tVERB\tVBP\tTense=Pres\t0\troot\t_\t_
3\tat\tat\tADP\tIN\t_\t4\tcase\t_\t_
4\tme\tI\tPRON\tPRP\t_\t2\tobl\t_\t_

"""
IOB = "Ann\tB-person\nSmith\tI-person\nsang\tO\n\nI\tO\nlove\tO\nParis\tB-location\n\n"
IOB2 = (
    "# text = Ann Smith sang\n1\tAnn\tB-PER\t-\t-\n2\tSmith\tI-PER\t-\t-\n3\tsang\tO\t-\t-\n\n"
    "1\tNew York\tB-LOC\t-\t-\n\n"
)
REVIEWS = (("POS", "a warm film"), ("NEG", "a dull film"), ("POS", "so funny"), ("NEG", "too long"))
OCCURRENCES = [
    {"word": "bank", "index": i, "text": text, "label": sense, "sense": sense}
    for sense, i, text in (
        ("river", 4, "we sat on the bank and watched the boats"),
        ("river", 2, "the muddy bank of the stream"),
        ("river", 1, "the bank of the river was steep"),
        ("money", 1, "the bank refused to lend him any money"),
        ("money", 5, "she asked for a loan bank clerks were helpful"),
    )
]
PAIRS = """\
main\tfile\t2012\t1\t3.0\tA man plays a guitar.\tA man is playing a guitar.
main\tfile\t2012\t2\t4.5\tA woman sings a song.\tA woman plays a song.
main\tfile\t2012\t3\t0.5\tA dog runs on grass.\tPrices rose in Tokyo.
"""
IN_CONTEXT = """\
T\tbank\tN\t1-4\tThe bank lent me money .\tHe works in a bank .
F\tbank\tN\t1-4\tThe bank lent me money .\tWe sat on the bank .
"""
COLUMNS = ("UID", "field", "linguistics_term", "sentence_good", "sentence_bad")
MINIMAL_PAIRS = [
    dict(zip(COLUMNS, row, strict=True))
    for row in (
        ("agreement_1", "morphology", "agreement", "The dogs are here.", "The dogs is here."),
        ("order_1", "syntax/semantics", "order", "She has a book.", "Book a has she."),
    )
]
SEMCOR = [
    {"tokens": ["We", "sat", "on", "the", "bank"], "sense": [None] * 4 + ["bank%1:17:01::"]},
    {
        "tokens": ["The", "bank", "lent", "us", "money"],
        "sense": [None, "bank%1:14:00::"] + 3 * [None],
    },
]
RAGANATO = """\
<corpus><text id="d0">
<sentence id="d0.s0"><wf lemma="we" pos="PRON">We</wf><wf lemma="sit" pos="VERB">sat</wf>
<wf lemma="on" pos="ADP">on</wf><wf lemma="the" pos="DET">the</wf>
<instance id="d0.s0.t0" lemma="bank" pos="NOUN">bank</instance></sentence>
</text></corpus>
"""
KEYS = "d0.s0.t0 bank%1:17:01::\n"

Run = Callable[..., str]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a script in this process and returns what it prints."""

    def run(script: str, *arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        import_module(script).main()
        return capsys.readouterr().out

    return run


def pack(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text.encode()))


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small folder of what the scripts read, see benchmarks/README.md."""
    data = tmp_path_factory.mktemp("data")
    for name in ("enwiki", "masc", "kowiki", "registers/chat"):
        for split in ("train", "valid"):
            pack(data / "lm" / name / f"{split}.txt.xz", PROSE)
    words = ["<S>", "</S>", "<UNK>", *sorted(set(PROSE.split())), "nowhere-else"]
    (data / "eval_vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    for split in ("train", "dev", "test"):
        copies = 40 if split == "train" else 1  # the parser leaves rare labels out
        pack(data / "ud" / "UD_English-EWT" / f"{split}.conllu.xz", CONLLU * copies)
        pack(data / "ner" / "wnut17" / f"{split}.iob.xz", IOB)
        rows = [{"text": text, "label": label} for label, text in REVIEWS]
        for name in ("sst2", "banking77", "clinc150", "subj", "nsmc"):
            pack(data / "textcat" / name / f"{split}.jsonl.xz", to_jsonl(rows))
        pack(data / "wsd" / "coarsewsd20" / f"{split}.jsonl.xz", to_jsonl(OCCURRENCES))
    for lang in ("de", "hu", "pt", "ro", "sv", "uk"):
        for name in ("few", "test"):
            pack(data / "languages" / lang / f"ud.{name}.conllu.xz", CONLLU * 40)
        for split in ("train", "dev", "test"):
            pack(data / "languages" / lang / f"ner.{split}.iob2.xz", IOB2)
    pack(data / "wsd" / "semcor" / "brown1.jsonl.xz", to_jsonl(SEMCOR[:1]))
    pack(data / "wsd" / "semcor" / "brown2.jsonl.xz", to_jsonl(SEMCOR[1:]))
    pack(data / "wsd" / "raganato-all" / "ALL.data.xml.xz", RAGANATO)
    pack(data / "wsd" / "raganato-all" / "ALL.gold.key.txt.xz", KEYS)
    pack(data / "blimp" / "pairs.jsonl.xz", to_jsonl(MINIMAL_PAIRS))
    pack(data / "sim" / "stsb-train.tsv.xz", PAIRS)
    pack(data / "wsd" / "wic-train.tsv.xz", IN_CONTEXT)
    return data


def to_jsonl(rows: Sequence[object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
