"""The scripts of the project's workflow `language`, on a few sentences."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import spacy
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_elmo.text.readers import BY_RULES
from spacy_elmo.text.shards import write_meta, write_shards

from ..pipeline.helpers import write_weights

pytestmark = pytest.mark.usefixtures("scripts")
ROW = "1\tHan\than\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tgår {}\tgå\tVERB\tVB\t_\t0\troot\t_\t_\n\n"


def test_what_the_last_steps_need(
    fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is seen before the first: an hour of training is between them."""
    import check

    monkeypatch.setattr(check, "import_extra", lambda *given: None)
    check.main("my_tasks2", "1.0.0rc1")
    for name, version, message in (
        ("my-tasks", "1.0.0", "--vars.name is 'my-tasks'"),
        ("tasks_", "1.0.0", "--vars.name is 'tasks_'"),
        ("tasks", "latest", "--vars.version is 'latest'"),
    ):
        assert message in fails(check.main, name, version)
    monkeypatch.setattr(check, "find_spec", lambda name: None)
    assert "python -m ensurepip" in fails(check.main, "tasks", "1.0.0")
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "spacy-elmo[viz]" in fails(check.main, "tasks", "1.0.0")


def test_facts_of_scripts() -> None:
    from text_facts import read_facts, remarks

    german = read_facts([["Er", "geht", "."], ["Haus"]])
    assert german.words == 2 and german.letter_bytes == 1 and german.cased == 1
    assert german.upper == pytest.approx(0.2) and german.unspaced == 0
    assert german.max_characters_per_token == 50
    [line] = remarks(german, "de", BY_RULES)
    assert line.startswith("2 words in a sentence, 1.0 bytes in a letter")
    ukrainian = read_facts([["найнепередбачуваніший", "він"]] * 10)
    assert ukrainian.letter_bytes == 2 and ukrainian.word_bytes == 42
    assert ukrainian.max_characters_per_token == 50
    hindi = read_facts([["अंतर्राष्ट्रीयकरणवाद"]])  # three bytes a letter
    assert hindi.max_characters_per_token == 70 and hindi.cased == 0 and hindi.upper == 0
    with pytest.raises(ValueError, match="no letters"):
        read_facts([["1", "2"]])


def test_what_a_text_warns_of() -> None:
    from text_facts import read_facts, remarks

    chinese = read_facts([["我们在河边散步。"]])
    with pytest.raises(ValueError, match="put spaces between the words"):
        list(remarks(chinese, "xx", BY_RULES))
    assert "what a word is" in list(remarks(chinese, "zh", "spacy.zh.ChineseTokenizer"))[1]
    korean = read_facts([["우리는", "강가를", "걷는다", "."]])
    assert len(list(remarks(korean, "ko", BY_RULES))) == 1
    low = read_facts([["er", "geht"] * 80])
    _, capitals, ends = remarks(low, "de", BY_RULES)
    assert "no capitals" in capitals and "more than 100 words" in ends


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Он иде.", "100% of the letters of the labelled sentences"),
        ("han går.", "17% of the letters of the labelled sentences"),  # which have capitals
        ("-No -dijo Han-.", "66.7% of the words have a hyphen in front"),
        ("Han går. — No — dijo Han.", ""),
    ],
)
def test_text_unlike_the_labelled_sentences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    """What a biLM learns of the one does not help with the other."""
    from language_data import main

    for split in ("train", "test"):
        (tmp_path / f"sr-ud-{split}.conllu").write_text(ROW.format(1) * 3, encoding="utf-8")
    (tmp_path / "text.txt").write_text(f"{text}\n" * 50, encoding="utf-8")
    main(tmp_path / "run", lang="sr", text=str(tmp_path / "text.txt"), conllu=str(tmp_path))
    output = " ".join(capsys.readouterr().out.split())
    assert said in output
    assert ("write both in one script" in output or "hyphen in front" in output) == bool(said)


def test_letters_and_dashes() -> None:
    from text_facts import stuck_dashes, unseen_letters

    [line] = unseen_letters(["čaša", "za", "čaj"], ["casa", "z", "j", "č", "1"])
    assert "11% of the letters" in line and "such as š:" in line
    assert not list(unseen_letters([*("aj" * 200), "ő"], ["aj"]))
    assert not list(unseen_letters(["1", "."], ["aj"]))
    assert not list(stuck_dashes(["Dit-il -- 5 -5 a-b x-ray -.", "Start- und Zielort"]))


def test_data_of_ones_own(tmp_path: Path) -> None:
    """Raw text in two files, a treebank under the names of UD, and entities."""
    from language_data import main

    bank = tmp_path / "bank"
    bank.mkdir()
    for split, n in (("train", 10), ("test", 3)):
        rows = "".join(ROW.format(i) for i in range(n))
        (bank / f"sv_x-ud-{split}.conllu").write_text(rows, encoding="utf-8", newline="\r\n")
        lines = "# text = Anna går\n1\tAnna\tB-PER\t-\t-\n2\tgår\tO\t-\t-\n\n" * n
        (bank / f"sv_x-ud-{split}.iob2").write_text(lines, encoding="utf-8")
    texts = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for path in texts:
        path.write_text("".join(f"Han går {i}.\n\n" for i in range(50)), encoding="utf-8")
    run = tmp_path / "run"
    text = ",".join(map(str, texts))
    main(run, lang="sv", text=text, conllu=str(bank), sentences=5)
    assert (run / "text" / "dev.txt").read_text(encoding="utf-8") == "Han går 49.\n" * 2
    assert len((run / "text" / "train.txt").read_text(encoding="utf-8").splitlines()) == 98
    facts = json.loads((run / "language.json").read_text(encoding="utf-8"))
    assert facts["max_characters_per_token"] == 50

    def read(kind: str, split: str) -> list:
        path = run / "corpus" / kind / f"{split}.spacy"
        return list(DocBin().from_disk(path).get_docs(Vocab()))

    assert [doc[1].text for doc in read("ud", "train")] == [f"går {i}" for i in range(0, 10, 2)]
    assert [doc[1].text for doc in read("ud", "dev")] == [f"går {i}" for i in range(1, 10, 2)]
    assert [t.tag_ for t in read("ud", "test")[0]] == ["PRON", "VB"]  # UPOS where it is alone
    assert [doc.ents[0].label_ for doc in read("ner", "train")] == ["PER"] * 5


def test_other_data_replace_those_before(tmp_path: Path) -> None:
    """All files of a split are read; entities of another treebank go; the same text stays."""
    from language_data import main

    for split, n in (("train-a", 2), ("train-b", 3), ("test", 1)):
        rows = "".join(ROW.format(i) for i in range(n))
        (tmp_path / f"sv-ud-{split}.conllu").write_text(rows, encoding="utf-8")
        (tmp_path / f"sv-ud-{split}.iob2").write_text("Anna\tB-PER\n", encoding="utf-8")
    text, run = tmp_path / "text.txt", tmp_path / "run"
    text.write_text("Han går.\n" * 50, encoding="utf-8")
    main(run, lang="sv", text=str(text), conllu=str(tmp_path))
    docs = DocBin().from_disk(run / "corpus" / "ud" / "train.spacy").get_docs(Vocab())
    assert len(list(docs)) == 5 and (run / "corpus" / "ner").is_dir()
    written = (run / "text" / "train.txt").stat().st_mtime_ns
    for path in tmp_path.glob("*.iob2"):
        path.unlink()
    main(run, lang="sv", text=f"{text}, ".rstrip(", "), conllu=str(tmp_path))
    assert (run / "text" / "train.txt").stat().st_mtime_ns == written
    assert not (run / "corpus" / "ner").exists()
    text.write_text("Hon går.\n" * 50, encoding="utf-8")
    main(run, lang="sv", text=str(text), conllu=str(tmp_path))
    assert (run / "text" / "train.txt").read_text(encoding="utf-8").startswith("Hon")


def test_codes_of_languages() -> None:
    from language_data import find_language

    assert find_language("xx", BY_RULES).lang == "xx"
    with pytest.raises(ValueError, match=r"'swe' is 'sv': give --vars\.lang sv"):
        find_language("swe", BY_RULES)
    with pytest.raises(ValueError, match=r"spaCy has no language 'qq'.*--vars\.lang xx"):
        find_language("qq", BY_RULES)


def test_what_is_missing(tmp_path: Path, fails: Callable[..., str]) -> None:
    from language_data import find_labelled, main

    run, gone = tmp_path / "run", str(tmp_path / "none.txt")
    assert "There is no text file" in fails(main, run, lang="sv", text=gone)
    assert "with --vars.text FILE" in fails(main, run, lang="da", local=str(tmp_path))
    with pytest.raises(ValueError, match=r"\*train\*\.conllu\* and \*test\*\.conllu\*"):
        find_labelled("ud", str(tmp_path), "sv", "")
    with pytest.raises(ValueError, match=r"no .*ud\.train\..*with --vars\.conllu FOLDER"):
        find_labelled("ud", "", "sv", str(tmp_path))
    for name in ("train", "test", "latest-train"):  # the last one would be in both
        (tmp_path / f"{name}.conllu").touch()
    with pytest.raises(ValueError, match=r"latest-train\.conllu .* both 'train' and 'test'"):
        find_labelled("ud", str(tmp_path), "sv", "")
    assert find_labelled("ner", str(tmp_path), "sv", "") == {}
    assert find_labelled("ner", "", "sv", str(tmp_path)) == {}
    (tmp_path / "ner.train.iob").touch()
    with pytest.raises(ValueError, match=r"There is no .*ner\.test\."):
        find_labelled("ner", "", "da", str(tmp_path))


def test_novels(tmp_path: Path) -> None:
    """An archive of ELTeC: the paragraphs and verses of its texts, without heads and the header;
    the dashes of a dialogue are words of their own, and divided words are joined."""
    from datasets import read_articles

    novel = (
        '<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><p>Meta</p></teiHeader><text><body>'
        "<head>Eins</head><p>Es war\n  <hi>einmal</hi>.</p><l>Ein Vers</l>"
        "<p>-¿Sí? -dijo.</p><p>może\xadmy vyni¬ kající \x96 c\x9cur ¬</p></body></text></TEI>"
    )
    with ZipFile(tmp_path / "text.zip", "w") as archive:
        archive.writestr("ELTeC-deu-1/level1/DEU001.xml", novel)
        archive.writestr("ELTeC-deu-1/level0/DEU001.xml", novel)
    assert list(read_articles(tmp_path / "text.zip")) == [
        "Es war einmal.", "Ein Vers", "— ¿Sí? — dijo.", "możemy vynikající – cœur ¬"
    ]  # fmt: skip


@pytest.mark.parametrize("is_fast", [True, False])
def test_an_hour_uses_what_there_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_fast: bool,
) -> None:
    """The size `hour`, and bfloat16; a line where that is not fast."""
    import bilm

    commands: list[str] = []
    monkeypatch.setattr(bilm, "elmo", lambda *parts: commands.append(" ".join(map(str, parts))))
    monkeypatch.setattr(bilm, "has_fast_bfloat16", lambda: is_fast)
    (tmp_path / "text").mkdir()
    for split in ("train", "dev"):
        (tmp_path / "text" / f"{split}.txt").touch()
    (tmp_path / "language.json").write_text('{"max_characters_per_token": 50}')

    def run(lang: str = "de", **settings: Any) -> list[str]:
        """The commands of `elmo`."""
        commands.clear()
        bilm.main(tmp_path, bilm="pretrain", lang=lang, **{"minutes": 60, **settings})
        return commands

    init, *_, pretrain = run(steps=9)
    assert "--size hour" in init and "--training.max_steps 9 " in pretrain
    assert ("--training.mixed_precision true" in pretrain) == is_fast
    assert ("bfloat16" in capsys.readouterr().out) == (not is_fast)
    assert "--training.max_steps 40000 " in run(minutes=300, steps=40_000)[-1]  # no limit
    assert "--minutes 60 " in run()[-1]
    # A config of one's own has its own settings.
    assert "mixed_precision" not in run(steps=9, config="my.cfg")[-1]
    for minutes in (0, -1):  # 0 is no pretraining without a limit
        with pytest.raises(SystemExit):
            run(minutes=minutes)
    assert "--vars.minutes is -1: give a number above 0" in capsys.readouterr().err
    # What was tokenized by other rules is not used.
    for split in ("train", "dev"):
        write_shards([["Er", "geht"]], tmp_path / "shards" / split)
        write_meta(tmp_path / "shards" / split, "de", BY_RULES)
    assert len(run()) == 2 and len(run("xx")) == 4


def test_a_parser_of_few_sentences(tmp_path: Path) -> None:
    """Of which no label of a move is frequent; more sentences have the labels of the size."""
    from datasets import read_rows
    from sizes import Size
    from spacy.cli.train import train
    from train import for_few, make_added

    (tmp_path / "x.conllu").write_text(ROW.format(1) * 8, encoding="utf-8")
    [doc, _] = [make(spacy.blank("sv")) for make in read_rows("ud", tmp_path / "x.conllu")]
    path = tmp_path / "train.spacy"
    for n, least in ((400, 30), (299, 29), (3, 1)):
        DocBin(docs=[doc] * n).to_disk(path)
        size = for_few(Size(steps=1, eval_every=1), path)
        assert size.min_action_freq == least
    assert for_few(Size(min_action_freq=1), path).min_action_freq == 1
    config = make_added("parser", "plain", size, "")
    config["paths"] |= {"train": str(path), "dev": str(path)}
    config.to_disk(tmp_path / "parser.cfg")
    train(tmp_path / "parser.cfg", tmp_path / "out")
    assert spacy.load(tmp_path / "out" / "model-last")("Han går").has_annotation("DEP")


def test_results_of_earlier_data_go(tmp_path: Path) -> None:
    """A component that is no longer trained."""
    import assemble

    weights = write_weights(tmp_path / "tiny")
    (tmp_path / "bilm.txt").write_text(f"{weights}\n", encoding="utf-8")
    (tmp_path / "pipeline" / "ner").mkdir(parents=True)
    assemble.main(tmp_path, tasks="ner", lang="xx")
    assert (tmp_path / "pipeline" / "elmo").is_dir()
    assert not (tmp_path / "pipeline" / "ner").exists()
