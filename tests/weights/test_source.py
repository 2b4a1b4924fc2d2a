"""Directories, zips and pairs of files that `elmo convert` and `elmo download` read."""

import gzip
import json
import shutil
import tempfile
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.weights.convert.published import from_options, to_options, write_published
from spacy_elmo.weights.convert.source import read_source
from spacy_elmo.weights.find import find_weights
from spacy_elmo.weights.native import save_bilm

from ..bilm.helpers import make_options, same_weights
from ..pipeline.helpers import CONFIG as LARGER
from .helpers import fails, make_folder, make_zip, read

CONFIG = from_options(make_options(cell_clip=3, proj_clip=3))
WORDS = ["<S>", "</S>", "<UNK>", "the", "a"]
VOCAB = "".join(f"{word}\n" for word in WORDS).encode()
OTHERS = {"meta.json": b'{"id": 204}', "README": b"\xff", "LICENSE": b"CC"}
MANY_LANGS = Path(__file__).parents[1] / "fixtures" / "many_langs_tiny"


@pytest.fixture(scope="module")
def model() -> BiLM:
    torch.manual_seed(0)
    return BiLM(CONFIG).eval()


@pytest.fixture(scope="module")
def files(model, tmp_path_factory) -> dict[str, bytes]:
    """A published model with its softmax: the content of each file."""
    folder = tmp_path_factory.mktemp("published")
    write_published(model, folder)
    with h5py.File(folder / "model.hdf5", "a") as file:
        file["softmax/W"] = np.arange(25, dtype="f4").reshape(5, 5)
        file["softmax/b"] = np.arange(5, dtype="f4")
    return {file.name: file.read_bytes() for file in folder.iterdir()} | {"vocab.txt": VOCAB}


def without(files, *names: str) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if name not in names}


LAYOUTS = {
    "own": lambda files, own: own,
    "published": lambda files, own: without(files, "vocab.txt"),
    "NLPL": lambda files, own: files | OTHERS,
    "h5 of any name": lambda files, own: {
        "options.json": files["options.json"], "elmo.h5": files["model.hdf5"]
    },
}  # fmt: skip


@pytest.mark.parametrize("prefix", [None, "", "./204/"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_source_of_weights(layout, prefix, files, model, tmp_path):
    """In a folder; or in a zip, of any name."""
    (tmp_path / "own").mkdir()
    save_bilm(model, tmp_path / "own")
    own = {file.name: file.read_bytes() for file in (tmp_path / "own").iterdir()}
    content = LAYOUTS[layout](files, own)
    if prefix is None:
        given = make_folder(tmp_path / "folder", content)
    else:
        others = {"empty/": b"", "__MACOSX/._options.json": b""}
        given = make_zip(tmp_path / "x", content | others, prefix)
    assert same_weights(read(given), model)


def test_two_files(files, model, tmp_path):
    """As the English models are called, in any order."""
    names = {"elmo_2x4096_options.json": "options.json", "elmo_2x4096_weights.hdf5": "model.hdf5"}
    make_folder(tmp_path, {name: files[other] for name, other in names.items()})
    given = [tmp_path / name for name in names]
    assert same_weights(read(*given), model) and same_weights(read(*given[::-1]), model)


def test_beside_the_config_of_something_else(files, tmp_path):
    (tmp_path / "many_langs").mkdir()
    for file in MANY_LANGS.iterdir():
        shutil.copy(file, tmp_path / "many_langs")
    make_folder(tmp_path / "published", files)
    for name in ("published", "many_langs"):
        (tmp_path / name / "config.cfg").write_text("[training]\nseed = 0")
        with pytest.raises(ValueError, match=r"elmo convert .*-converted"):
            find_weights(tmp_path / name)
        assert read_source([tmp_path / name]).format == name


@pytest.mark.parametrize(("packed", "in_zip"), [(False, False), (True, True)])
def test_what_lies_beside_published_weights(packed, in_zip, files, tmp_path):
    vocab = {"vocab.txt.gz": gzip.compress(VOCAB)} if packed else {"vocab.txt": VOCAB}
    content = without(files, "vocab.txt") | vocab | OTHERS | {"README.md": "# தமிழ்".encode()}
    given = make_zip(tmp_path / "x.zip", content) if in_zip else make_folder(tmp_path, content)
    source = read_source([given])
    assert source.format == "published"
    assert source.card.documents == {"README.md": "# தமிழ்", "LICENSE": "CC"}
    assert source.words == WORDS
    assert torch.equal(source.head["weight"], torch.arange(25.0).reshape(5, 5))
    assert torch.equal(source.head["bias"], torch.arange(5.0))


def test_many_langs_in_a_zip(tmp_path):
    content = {file.name: file.read_bytes() for file in MANY_LANGS.iterdir()}
    packed = make_zip(tmp_path / "x.zip", content, "model/")
    assert same_weights(read(packed), read(MANY_LANGS))


# What is none


def test_files_that_are_none(files, tmp_path):
    folder = make_folder(tmp_path, files)
    for names in (
        ["options.json", "other.json"],
        ["model.hdf5", "other.hdf5"],
        ["options.json", "model.hdf5", "vocab.txt"],
    ):
        fails([folder / name for name in names], *names, "are no options.json and HDF5 file")
    packed = make_zip(tmp_path / "x.zip", files)
    for file in (packed, tmp_path / "nowhere.hdf5"):
        fails([folder / "options.json", file], file, "Cannot read the HDF5 file")
    fails(folder / "vocab.txt", "not a zip")


def test_a_zip_without_one_biLM(files, tmp_path):
    path = tmp_path / "x.zip"
    fails(make_zip(path, without(files, "options.json")), "0 folders with options.json")
    fails(make_zip(path, without(files, "model.hdf5")), "exactly one *.hdf5 file", "[]")
    fails(make_zip(path, files | {"a/options.json": b""}), "2 folders with options.json")
    fails(make_zip(path, {"config.json": b"{}"}), "is no directory with")
    fails(make_zip(path, files | {"model.hdf5": b""}), "Cannot read the HDF5 file model.hdf5")


# Attacks: what a file from a stranger may try


@pytest.mark.parametrize("prefix", ["../", "/", "..\\", "a/../../"])
def test_names_that_lead_out_of_a_zip(prefix, files, model, tmp_path):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    path = make_zip(folder / "x.zip", files, prefix)
    try:
        assert same_weights(read(path), model)
    except ValueError as error:
        assert str(path) in str(error)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [path]


@pytest.mark.parametrize("beside", [{}, {"options.json": b"{}"}, "files"])
def test_a_zip_that_unpacks_to_far_more(beside, files, tmp_path, monkeypatch):
    """Nothing of it is written before that is seen."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    content = {"model.hdf5": bytes(2**25)} | (files if beside == "files" else beside)
    content |= {"vocab.txt": bytes(2**25)}
    path = make_zip(tmp_path / "x.zip", content)
    assert path.stat().st_size < 2**20
    extracted = []
    extract = zipfile.ZipFile.extract
    monkeypatch.setattr(
        zipfile.ZipFile, "extract", lambda *given: (extracted.append(given), extract(*given))[1]
    )
    said = "more than 100 times those of the zip" if beside else "0 folders with options.json"
    fails(path, "Cannot read the zip", said)
    assert not extracted and not [*(tmp_path / "temporary").iterdir()]


def test_other_files_in_a_zip_do_not_matter(files, model, tmp_path):
    """Whatever their size is, in any folder but that of the biLM."""
    path = make_zip(tmp_path / "x.zip", {"other/bomb": bytes(2**25), **files})
    assert same_weights(read(path), model)


@pytest.mark.parametrize("place", [0.5, None])
def test_a_damaged_zip(place, files, tmp_path):
    """A bit of one of its files, or its end."""
    path = make_zip(tmp_path / "x.zip", files | OTHERS)
    data = bytearray(path.read_bytes())
    if place:
        data[int(place * len(data))] ^= 0x04
    path.write_bytes(data[: None if place else -30])
    fails(path, "Cannot read the zip")


def test_hdf5_that_claims_more_than_it_has(tmp_path):
    torch.manual_seed(0)
    write_published(BiLM(LARGER), tmp_path)
    options = to_options(LARGER)
    options["lstm"]["dim"] = 2**20
    (tmp_path / "options.json").write_text(json.dumps(options))
    with h5py.File(tmp_path / "model.hdf5", "r+") as file:
        for d in range(2):
            for layer in range(LARGER.n_layers):
                cell = f"RNN_{d}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
                shapes = {"W_0": (2 * 8, 2**22), "B": (2**22,), "W_P_0": (2**20, 8)}
                for name, shape in shapes.items():
                    del file[f"{cell}/{name}"]
                    file.create_dataset(f"{cell}/{name}", shape, "f4", chunks=True)
    assert (tmp_path / "model.hdf5").stat().st_size < 200_000
    fails(tmp_path, "missing tensors", "W_0")


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "changes",
    [
        {"filters": [[1, 2**20]] * 1000},
        {"filters": [[1, 2**20]], "projection_dim": 2**20, "dim": 2**20},
        {"n_layers": 1000, "dim": 2**20},
    ],
)
def test_options_that_claim_more_than_there_is(changes, files, tmp_path):
    folder = make_folder(tmp_path, files)
    (folder / "options.json").write_text(json.dumps(make_options(**changes)))
    fails(folder)
