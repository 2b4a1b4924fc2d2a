"""The project in ``project/``: what its workflows need, and each of them run."""

from __future__ import annotations

import lzma
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from hashlib import md5
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import spacy
from spacy.util import load_config
from weasel.cli.document import MARKER_END, MARKER_START
from weasel.cli.document import project_document as document
from weasel.util.config import load_project_config

from spacy_elmo.pretraining.log import read_log
from spacy_elmo.weights.find import find_weights

from .sentences import write_local_folder

DATA = os.environ.get("SPACY_ELMO_DATA") or None
PROJECT = Path(__file__).parents[2] / "project"
LONG = pytest.mark.timeout(1800)  # on a busy machine


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy in which nothing has been run."""
    ignored = shutil.ignore_patterns("assets", "runs", "project.lock", "__pycache__")
    return Path(shutil.copytree(PROJECT, tmp_path / "project", ignore=ignored))


def make_command(project: Path, workflow: str, **variables: object) -> list[str]:
    options = [part for name, value in variables.items() for part in (f"--vars.{name}", str(value))]
    return [sys.executable, "-m", "spacy", "project", "run", workflow, project.name, *options]


def run(project: Path, workflow: str, **variables: object) -> str:
    """Run a workflow from the parent folder, as one would from the root of the repository."""
    command = make_command(project, workflow, **variables)
    result = subprocess.run(command, cwd=project.parent, capture_output=True, text=True)
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    return result.stdout


def test_workflows_and_what_they_need(project: Path) -> None:
    config = load_project_config(project)
    commands = {command["name"]: command for command in config["commands"]}
    assert set(config["workflows"]) == {
        "all", "pretrain", "train", "compare", "explain", "package", "language"
    }  # fmt: skip
    assert not set(config["workflows"]) & set(commands)  # spaCy would run a workflow in itself
    for name in ("all", "language"):  # which take hours, and build packages
        assert config["workflows"][name][0] == "check"
    used = {step for steps in config["workflows"].values() for step in steps}
    assert set(commands) - used == {"readme"}
    for name in ("assemble", "language-pipeline"):  # which has the tasks that there are data for
        assert "runs/en-full/corpus" in commands[name]["deps"]
    for name in ("corpora", "language-data", "train-tasks"):  # which read what no `deps` can name
        assert commands[name]["no_skip"]
    # Run again after a longer pretraining.
    assert "runs/en-full/pretrained/model-best" in commands["language-tasks"]["deps"]


def test_variables_with_blanks(project: Path) -> None:
    """Are one argument in each command."""
    given = {"word": "give up", "tasks": "tagger, ner", "bilm": "my biLM", "config": "my config"}
    overrides = {f"vars.{name}": value for name, value in given.items()}
    config = load_project_config(project, overrides=overrides)
    scripts = [line for command in config["commands"] for line in command["script"]]
    for value in given.values():
        lines = [line for line in scripts if value in line]
        assert lines and all(value in shlex.split(line) for line in lines)


def test_the_project_is_documented(project: Path) -> None:
    """If not: python -m spacy project document project --output project/COMMANDS.md --no-emoji"""
    page = (project / "COMMANDS.md").read_text(encoding="utf-8")
    start, end = MARKER_START.format(tag="WEASEL"), MARKER_END.format(tag="WEASEL")
    assert start in page and end in page
    document(project, project / "COMMANDS.md", no_emoji=True)
    assert (project / "COMMANDS.md").read_text(encoding="utf-8") == page
    readme = (project / "README.md").read_text(encoding="utf-8")
    variables = load_project_config(project)["vars"]
    assert all(f"`{name}`" in readme for name in variables if name != "run")


@pytest.mark.data
@pytest.mark.skipif(DATA is None, reason="needs the folder that SPACY_ELMO_DATA names")
@pytest.mark.usefixtures("scripts")
def test_checksums_of_the_assets(project: Path) -> None:
    """They are those of the local folder's files, where it has these as they were published."""
    local = import_module("datasets").LOCAL
    checked = []
    for asset in load_project_config(project)["assets"]:
        assert not {"main", "master"} & set(asset["url"].split("/")), "not a release or a commit"
        lang, name = asset["dest"].split("/")[1:]
        kind, *split = name.split(".")[:-1]
        if "checksum" not in asset or lang not in local:
            continue
        path = Path(DATA or "") / "data" / local[lang][kind].format(*split)
        content = lzma.decompress(path.read_bytes())
        if asset["url"].endswith("wnut17train.conll"):  # the local one lacks the tabs
            content = content.replace(b"\n\n", b"\n\t\n", 2394)
        assert md5(content).hexdigest() == asset["checksum"], asset["dest"]
        checked.append(f"{lang}.{kind}")
    few = [f"{lang}.ud" for lang in ("de", "hu", "pt", "ro", "sv", "uk")] * 2
    more = ["en.ner", "en.ud", "ko.ud", "pt.ner", "sv.ner"] * 3
    assert sorted(checked) == sorted([*few, *more])


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize(("lang", "name"), [("en", "en_sm"), ("ko", "weights/ko_sm")])
def test_the_biLM_of_a_language(
    project: Path, lang: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    import_module("bilm").main(project, lang=lang)
    assert (project / "bilm.txt").read_text(encoding="utf-8") == f"{name}\n"
    assert find_weights(name).card().meta["lang"] == lang


@pytest.mark.slow
@LONG
@pytest.mark.skipif(find_spec("setuptools") is None, reason="pip builds packages with setuptools")
def test_all(project: Path) -> None:
    output = run(project, "all", size="tiny")
    assert "predicts the same" in output
    out = project / "runs" / "en-tiny"
    table = (out / "scores.md").read_text(encoding="utf-8")
    assert [line.split()[1] for line in table.splitlines()[2:]] == [
        "tagger", "parser", "ner", "textcat"
    ]  # fmt: skip
    for name in ("scores.svg", "mixes.svg"):
        assert (out / name).stat().st_size > 500
    nlp = spacy.load(out / "pipeline")
    doc = nlp("Peter paid the loan at Northbank.")
    assert {ent.text for ent in doc.ents} >= {"Peter"}
    assert doc[1].dep_ == "ROOT" and set(doc.cats) == {"money", "nature"}
    assert doc.tensor is None  # removed by doc_cleaner, as in the recipes
    assert "nothing changed" in run(project, "train", size="tiny")


@pytest.mark.slow
@LONG
@pytest.mark.skipif(find_spec("setuptools") is None, reason="pip builds packages with setuptools")
def test_a_language(project: Path) -> None:
    """From sentences of our own to wheels; then from files of a user."""
    pytest.importorskip("matplotlib")
    output = run(project, "language", size="tiny", minutes=1, steps=40, version="1.0.0-rc1")
    assert "en_elmo_tasks is installed and predicts the same" in output
    out = project / "runs" / "en-tiny"
    table = (out / "scores.md").read_text(encoding="utf-8")
    assert [line.split()[1] for line in table.splitlines()[2:]] == ["tagger", "parser", "ner"]
    for name in ("pretraining.png", "mixes.svg"):
        assert (out / name).stat().st_size > 200
    wheels = sorted(path.name.rsplit("-", 3)[0] for path in (out / "wheels").iterdir())
    assert wheels == ["en_bilm-1.0.0rc1", "en_elmo_tasks-1.0.0rc1"]  # as pip writes versions
    config = load_config(out / "models" / "tagger-elmo" / "config.cfg")
    assert config["training"]["max_steps"] == config["training"]["eval_frequency"] == 40
    assert config["corpora"]["train"]["gold_preproc"]
    assert "nothing changed" in run(project, "language-bilm", size="tiny", minutes=1)

    page = (PROJECT.parent / "docs" / "languages.md").read_text(encoding="utf-8")
    commands = re.findall(r"^python -m spacy project run (.*)$", page, re.MULTILINE)
    assert commands[0] == "language project --vars.size tiny"
    options = re.findall(r"--vars\.(\w+) (\S+)", commands[2])
    write_local_folder(project / "data")
    bank = project.parent / "treebank"
    bank.mkdir()
    for split in ("train", "test"):
        packed = project / "data" / "ud" / "UD_English-EWT" / f"{split}.conllu.xz"
        (bank / f"nb_x-ud-{split}.conllu").write_bytes(lzma.decompress(packed.read_bytes()))
    (project.parent / "raw.txt").write_text("Dette er en setning. Her er en til.\n" * 100, "utf-8")
    output = run(project, "language-data", **dict(options), size="tiny", sentences=12)
    assert "ud: 12 train, 18 dev, 10 test" in output and "ner: no data" in output


@pytest.mark.slow
@LONG
@pytest.mark.skipif(find_spec("setuptools") is None, reason="pip builds packages with setuptools")
def test_each_workflow_with_a_biLM_of_its_own(project: Path) -> None:
    pytest.importorskip("matplotlib")
    few = {"size": "tiny", "steps": 6, "tasks": "tagger,ner", "bilm": "pretrain"}
    out = project / "runs" / "en-tiny"
    run(project, "pretrain", **few)
    assert (out / "pretrained" / "model-best" / "head.safetensors").exists()
    assert (out / "pretraining.png").exists()
    run(project, "train", **few)
    assert (out / "bilm.txt").read_text(encoding="utf-8") == "runs/en-tiny/pretrained/model-best\n"
    assert sorted(path.name for path in (out / "models").iterdir()) == [
        "ner-elmo", "ner-plain", "tagger-elmo", "tagger-plain"
    ]  # fmt: skip
    config = (out / "models" / "ner-elmo" / "config.cfg").read_text(encoding="utf-8")
    assert "max_steps = 6" in config and "eval_frequency = 1" in config
    (out / "models" / "ner-plain" / "finished.txt").unlink()  # as if it had been interrupted
    again = run(project, "train", **few)
    assert again.count("is trained already") == 3 and "ner, without ELMo" in again
    assert "| tagger | tag accuracy |" in run(project, "compare", **few)
    run(project, "explain", **few, word="river")
    assert "river" in (out / "senses.svg").read_text(encoding="utf-8")
    output = run(project, "package", **few, name="small", version="0.1.0")
    assert "en_small is installed and predicts the same" in output
    assert (out / "en_small-0.1.0").is_dir()


@pytest.mark.slow
@LONG
def test_adapting(project: Path) -> None:
    """On English from a local folder, relative to the project, as the assets are."""
    write_local_folder(project / "data")
    output = run(project, "corpora", size="tiny", local="data")
    assert "ner: 30 train, 10 dev, 10 test" in output
    run(project, "bilm", size="tiny", bilm="adapt", steps=4)
    out = project / "runs" / "en-tiny" / "adapted"
    assert "mean" in read_log(out / "log.jsonl")[0]  # the embedded biLM's, before a step
    assert (out / "model-best").is_dir()


def interrupt(project: Path, workflow: str, saved: Path, **variables: object) -> None:
    """Run a workflow, and press Ctrl-C once a directory is saved: each of its processes gets it."""
    process = subprocess.Popen(
        make_command(project, workflow, **variables), cwd=project.parent,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        # Processes in the background of a shell script are started with Ctrl-C ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip

    def sizes(folder: Path) -> dict[str, int]:
        return {file.name: file.stat().st_size for file in folder.rglob("*") if file.is_file()}

    try:
        last = saved.with_name("model-last")  # of which spaCy makes a copy
        while not saved.is_dir() or (last.is_dir() and sizes(saved) != sizes(last)):
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(300) != 0
        while True:  # until the last process of the group has ended
            os.killpg(process.pid, 0)
            time.sleep(0.1)
    except ProcessLookupError:
        pass
    finally:
        process.kill()


@pytest.mark.slow
@LONG
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no groups of processes")
def test_ctrl_c_leaves_a_model_of_a_task(project: Path) -> None:
    models = project / "runs" / "en-tiny" / "models" / "tagger-elmo"
    interrupt(project, "train", models / "model-best", size="tiny", tasks="tagger")
    assert not (models / "finished.txt").exists()
    nlp = spacy.load(models / "model-best")
    assert all(token.tag_ for token in nlp("They swam in cold water."))


@pytest.mark.slow
@pytest.mark.data
@LONG
@pytest.mark.skipif(DATA is None, reason="needs the folder that SPACY_ELMO_DATA names")
def test_korean(project: Path) -> None:
    few = {"lang": "ko", "size": "tiny", "steps": 20, "local": Path(DATA or "") / "data"}
    assert "predicts the same" in run(project, "all", **few)
    out = project / "runs" / "ko-tiny"
    assert (out / "bilm.txt").read_text(encoding="utf-8") == "weights/ko_sm\n"
    nlp = spacy.load(out / "pipeline")
    assert nlp.lang == "ko" and nlp("나는 학교에 간다.")[0].tag_
