"""What a ``weights`` setting may be, and what is said of everything else."""

import json
import os
import pickle
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest
import spacy
import torch
from safetensors.torch import save_file

from spacy_elmo import Encoder, add_elmo
from spacy_elmo.weights.convert.source import read_source
from spacy_elmo.weights.find import EMBEDDED, WeightsNotFoundError, find_weights, load_bilm
from spacy_elmo.weights.layout import read_words
from spacy_elmo.weights.native import Weights

from ..bilm.helpers import same_weights
from ..pipeline.helpers import write_language_model, write_weights

REPOSITORY = Path(__file__).parents[2] / "project" / "weights"


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return write_weights(tmp_path / "weights")


@pytest.fixture
def beside(weights, tmp_path, monkeypatch):
    """Weights in a directory whose path here is the name of others."""
    monkeypatch.chdir(tmp_path)
    return weights.rename(tmp_path / "en_sm")


def test_a_name_before_a_directory(beside, tmp_path):
    """With a warning; a `Path` is none."""
    expected = load_bilm(beside)
    said = r"'en_sm' is taken as a name, .*write '\./en_sm'"
    with pytest.warns(UserWarning, match=said):
        assert find_weights("en_sm").where == str(EMBEDDED / "en_sm")
    with pytest.warns(UserWarning, match=said):
        source = read_source(["en_sm"])
    assert same_weights(source.model, load_bilm(EMBEDDED / "en_sm")) and source.words
    paths = Path("en_sm"), "./en_sm", Path("../") / tmp_path.name / "en_sm", str(beside)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for setting in paths:
            for model in (load_bilm(setting), read_source([setting]).model):
                assert same_weights(model, expected)


def test_a_path_stays_one_as_a_text(beside):
    """In the settings of an encoder, and in a config; of weights that were found, too."""
    width = load_bilm(beside).config.width
    encoder = Encoder(Path("en_sm"))
    assert pickle.loads(pickle.dumps(encoder)) == encoder
    assert encoder(["A text."])[0].shape[1] == encoder.shape[0] == width
    config = {"nlp": {"lang": "en", "pipeline": ["tagger"]}}
    config["components"] = {"tagger": {"factory": "tagger"}}
    for weights in (Path("en_sm"), find_weights(Path("en_sm"))):
        made = add_elmo(config, weights=weights)
        nlp = spacy.util.load_model_from_config(made)
        assert nlp.get_pipe("elmo").bilm.config.width == width


def test_files_that_may_not_be_looked_at(monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", refused)
    monkeypatch.setattr(Path, "exists", refused)
    with pytest.raises(WeightsNotFoundError, match=r"Cannot read the ELMo weights .*private.*den"):
        find_weights("private")


@pytest.mark.parametrize("setting", ["en_smm", "no/where", Path("nowhere.hdf5"), "a\nb", "../x"])
def test_nothing_of_that_name(setting):
    with pytest.raises(WeightsNotFoundError, match="no such directory") as error:
        find_weights(setting)
    assert repr(str(setting)) in str(error.value) and "'en_sm'" in str(error.value)


def test_a_path_that_is_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WeightsNotFoundError, match=r"'en_sm' \(a Path is not taken as a name\)"):
        find_weights(Path("en_sm"))


def test_the_error_says_where_weights_of_the_repository_are():
    names = [path.parent.name for path in sorted(REPOSITORY.glob("*/config.json"))]
    assert "en_md" in names
    for name in names:
        where = f"directory with config.json and weights.safetensors, as project/weights/{name} in"
        with pytest.raises(WeightsNotFoundError, match=where):
            find_weights(name)
        with pytest.raises(WeightsNotFoundError, match=where):
            Encoder(name)(["A text."])


@pytest.mark.parametrize("setting", [None, 5, {"a": 1}])
def test_neither_a_name_nor_a_path(setting):
    with pytest.raises(ValueError, match="Give a name or a directory") as error:
        find_weights(setting)
    assert repr(setting) in str(error.value)


@pytest.mark.parametrize("setting", [".", "", "/", "x.hdf5"])
def test_something_else(setting, tmp_path, monkeypatch):
    """The same is said by `elmo convert`."""
    monkeypatch.chdir(tmp_path)
    Path("config.cfg").touch()
    Path("x.hdf5").touch()
    for use, given in ((find_weights, setting), (read_source, [setting]), (find_weights, [])):
        with pytest.raises(ValueError, match=r"options\.json with its HDF5 file.*dump_weights"):
            use(given)


@pytest.mark.parametrize(
    ("setting", "command"),
    [
        (".", ". here-converted"),
        ("a model.zip", "'a model.zip' 'a model-converted'"),
        ("en/x.hdf5", "en en/x-converted"),  # its options.json is there, too
        (["en/options.json", "en/x.hdf5"], "en/options.json en/x.hdf5 en/x-converted"),
    ],
)
def test_other_formats_are_converted_first(setting, command, tmp_path, monkeypatch):
    """The error has the whole command, and what to set then; in a pipeline, too."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("options.json").touch()
    Path("a model.zip").touch()
    Path("en").mkdir()
    Path("en/x.hdf5").touch()
    out = command.split(" ")[-1] if "'" not in command else "a model-converted"
    said = f'spacy elmo convert {command} and then set weights = "{out}".'
    nlp = spacy.blank("en")
    for use in (find_weights, lambda weights: add(nlp, weights)):
        with pytest.raises(ValueError) as error:
            use(setting)
        assert said in str(error.value)


def add(nlp, weights):
    nlp.add_pipe("elmo", config={"model": {"weights": weights}})
    nlp("A text.")


# Attacks: what a directory from a stranger may try


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("name", "use"), [("weights.safetensors", Weights.load), ("head.safetensors", Weights.head)]
)
def test_thousands_of_tensors(tmp_path, name, use):
    """Names are compared before a tensor is read; reading each took minutes together."""
    path = write_language_model(tmp_path / "weights", ["a"])
    save_file({f"t{i}": torch.zeros(0) for i in range(30_000)}, path / name)
    with pytest.raises(ValueError, match="unknown") as error:
        use(find_weights(path))
    assert len(str(error.value)) < 2000


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "changes",
    [
        {"filters": [[1, 2**20]] * 1000},
        {"filters": [[50, 2**20]] * 1000, "char_dim": 2**20, "n_highway": 1000},
        {"dim": 2**20, "n_layers": 1000},
        {"projection_dim": 2**20, "dim": 2**20},
        {"token_encoder": "char_word_cnn", "n_words": 2**31 - 4, "n_characters": 2**31 - 4,
         "vector_dim": 2**20},
    ],
)  # fmt: skip
def test_a_config_that_claims_more_than_there_is(weights, changes):
    """It takes neither memory nor time to see that the tensors do not fit."""
    config = json.loads((weights / "config.json").read_text()) | changes
    (weights / "config.json").write_text(json.dumps(config))
    with (
        limited_memory(),
        pytest.raises(ValueError, match=r"missing tensors|has the shape|together"),
    ):
        find_weights(weights).load()


@contextmanager
def limited_memory():
    """One more gigabyte of memory is an error."""
    resource = pytest.importorskip("resource")
    if not Path("/proc/self/statm").exists():
        pytest.skip("only Linux tells how much is used")
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize(
    "file", ["config.json", "meta.json", "README.md", "vocab.txt", "statistics.safetensors"]
)
def test_files_without_end(tmp_path, file):
    """As sparse files they take no room on the disk."""
    path = write_language_model(tmp_path / "weights", ["a"])
    with (path / file).open("ab") as opened:
        opened.truncate(2**28 + 10)
    found = find_weights(path)
    with limited_memory(), pytest.raises(ValueError, match=rf"{file}: it has more than"):
        found.card(), found.words(), found.statistics()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
@pytest.mark.parametrize("file", ["config.json", "weights.safetensors", "meta.json"])
def test_a_pipe_instead_of_a_file(weights, file):
    (weights / file).unlink()
    os.mkfifo(weights / file)
    with pytest.raises(ValueError, match=f"{file}"):
        found = find_weights(weights)
        found.card(), found.load()


def test_a_packed_vocabulary_without_end(tmp_path):
    import gzip

    path = tmp_path / "vocab.txt.gz"
    path.write_bytes(gzip.compress(b"word\n" * 20_000_000, 1))
    with limited_memory(), pytest.raises(ValueError, match=r"vocab\.txt\.gz: it has more than"):
        read_words(path)
