"""What a ``weights`` setting may be, and what is said of everything else."""

import gc
import gzip
import json
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.lm.head import load_head
from spacy_elmo.weights.find import EMBEDDED, find_weights, load_bilm
from spacy_elmo.weights.native import save_bilm
from spacy_elmo.weights.published.options import from_options
from spacy_elmo.weights.published.weights import write_published

from ..bilm.helpers import fails, make_options, same_weights, write
from ..pipeline.helpers import TEXTS, make_nlp

h5py = pytest.importorskip("h5py")
CONFIG = from_options(make_options(cell_clip=3, proj_clip=3))
WORDS = ["<S>", "</S>", "<UNK>", "the", "a"]
VOCAB = "".join(f"{word}\n" for word in WORDS).encode()
OTHERS = {"meta.json": b'{"id": 204}', "README": b"\xff", "LICENSE": b"CC", "more.hdf5": b"more"}
PARTS = ["options.json", "model.hdf5", "vocab.txt", "meta.json", "LICENSE"]
STORED, DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED


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


def make_folder(path: Path, files) -> Path:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def make_zip(path: Path, files, prefix: str = "", compression: int = DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(f"{prefix}{name}", content)
    return path


def without(files, *names: str) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if name not in names}


@pytest.fixture(autouse=True)
def room(tmp_path_factory, monkeypatch):
    """Where temporary files go; there are none when a test is over."""
    path = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    yield path
    if list(path.iterdir()):
        gc.collect()
    assert not list(path.iterdir())


# ---- Names


def test_an_embedded_name_comes_before_a_directory(model, tmp_path, monkeypatch):
    (tmp_path / "en_sm").mkdir()
    save_bilm(model, tmp_path / "en_sm")
    monkeypatch.chdir(tmp_path)
    assert find_weights("en_sm").where == str(EMBEDDED / "en_sm")
    assert find_weights(["en_sm"]).where == str(EMBEDDED / "en_sm")
    for setting in ("./en_sm", Path("../") / tmp_path.name / "en_sm", str(tmp_path / "en_sm")):
        assert same_weights(load_bilm(setting), model)


def test_what_was_found_is_found(files, tmp_path):
    weights = find_weights(make_folder(tmp_path, files))
    assert find_weights(weights) is weights


def test_files_that_may_not_be_looked_at(monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", refused)
    monkeypatch.setattr(Path, "is_dir", refused)
    for weights in ("private", ["private/options.json", "private/weights.hdf5"]):
        with pytest.raises(ValueError, match=r"Cannot read the ELMo weights .*private.*denied"):
            find_weights(weights)


@pytest.mark.parametrize("module", ["lost_weights", "lost.weights"])
def test_a_name_whose_module_is_not_there(module, tmp_path, monkeypatch):
    info = tmp_path / "lost-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lost\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[spacy_elmo_weights]\nlost_sm = {module}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    fails("lost_sm", f"'{module}'", "Reinstall it")


@pytest.mark.parametrize("setting", ["en_smm", "no/where.zip", Path("nowhere.hdf5"), "a\nb"])
def test_nothing_of_that_name(setting):
    with pytest.raises(ValueError, match="no such file or directory") as error:
        find_weights(setting)
    for part in (repr(str(setting)), "'weights'", "'en_sm'", "options.json"):
        assert part in str(error.value)


# ---- Directories and pairs of files


def own(path, files, model):
    save_bilm(model, path)
    return path


def own_beside_published(path, files, model):
    make_folder(path, without(files, "model.hdf5"))
    return own(path, files, model)


def dumped_checkpoint(path, files, model):
    extra = {"checkpoint": b"", "model.ckpt-9.index": b"", "model.ckpt-9.meta": b""}
    return make_folder(path, files | extra)


def renamed(path, files):
    """As the English models are called."""
    return make_folder(
        path,
        {
            "elmo_2x4096_options.json": files["options.json"],
            "elmo_2x4096_weights.hdf5": files["model.hdf5"],
            "elmo_2x1024_options.json": b"{}",
        },
    )


SOURCES = {
    "own": own,
    "own beside options.json": own_beside_published,
    "published": lambda path, files, _: make_folder(path, without(files, "vocab.txt")),
    "with any name": lambda path, files, _: make_folder(
        path, {"options.json": files["options.json"], "elmo.hdf5": files["model.hdf5"]}
    ),
    "h5": lambda path, files, _: make_folder(
        path, {"options.json": files["options.json"], "elmo.h5": files["model.hdf5"]}
    ),
    "NLPL": lambda path, files, _: make_folder(path, files | OTHERS),
    "NLPL, packed words": lambda path, files, _: make_folder(
        path, without(files, "vocab.txt") | {"vocab.txt.gz": gzip.compress(VOCAB)}
    ),
    "a checkpoint's numbers": dumped_checkpoint,
    "str": lambda path, files, _: str(make_folder(path, files)),
    "list of one": lambda path, files, _: [str(make_folder(path, files))],
    "two files": lambda path, files, _: [
        renamed(path, files) / "elmo_2x4096_options.json",
        path / "elmo_2x4096_weights.hdf5",
    ],
    "two files, the other way round": lambda path, files, _: (
        str(renamed(path, files) / "elmo_2x4096_weights.hdf5"),
        str(path / "elmo_2x4096_options.json"),
    ),
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES.keys())
def test_a_source_of_weights(make, files, model, tmp_path):
    weights = find_weights(make(tmp_path, files, model))
    assert weights.config() == CONFIG
    assert same_weights(weights.load(), model)
    assert str(tmp_path) in weights.where


@pytest.mark.parametrize("vocab", ["vocab.txt", "vocab.txt.gz"])
def test_words_and_softmax_beside_the_weights(vocab, files, tmp_path):
    packed = {vocab: gzip.compress(VOCAB) if vocab.endswith("gz") else VOCAB}
    weights = find_weights(make_folder(tmp_path, without(files, "vocab.txt") | packed))
    assert weights.has_head()
    words, tensors = weights.head()
    assert words == WORDS == weights.words()
    assert torch.equal(tensors["weight"], torch.arange(25.0).reshape(5, 5))
    assert torch.equal(tensors["bias"], torch.arange(5.0))


# ---- Zips


def open_files(folder: Path) -> list[str]:
    """The files in a folder that this process has open, with a name or without."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("only Linux lists open files")
    links = (os.readlink(each) for each in descriptors.iterdir() if each.is_symlink())
    return [link for link in links if link.startswith(str(folder))]


@pytest.mark.parametrize("compression", [STORED, DEFLATED])
@pytest.mark.parametrize("prefix", ["", "204/", "./"])
@pytest.mark.parametrize("vocab", ["vocab.txt", "vocab.txt.gz"])
def test_a_zip(compression, prefix, vocab, files, model, room, tmp_path):
    packed = {vocab: gzip.compress(VOCAB) if vocab.endswith("gz") else VOCAB}
    content = without(files, "vocab.txt") | packed | OTHERS | {"README.md": "# தமிழ்".encode()}
    path = make_zip(tmp_path / "x.zip", content | {"empty/": b""}, prefix, compression)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/._options.json", b"")
    for setting in (path, str(path)):
        weights = find_weights(setting)
        assert weights.where == str(path)
        assert weights.config() == CONFIG
        assert weights.card().documents == {"README.md": "# தமிழ்", "LICENSE": "CC"}
        assert weights.words() == WORDS
        assert not open_files(room)  # nothing is unpacked for that
        assert same_weights(weights.load(), model)
        assert same_weights(weights.load(), model)
        assert weights.has_head()
        assert weights.head()[0] == WORDS
        assert len(open_files(room)) == 1  # unpacked once
        assert not list(room.iterdir())  # to a file without a name
        del weights
        gc.collect()
        assert not open_files(room)


def test_a_zip_of_any_name(files, model, tmp_path):
    assert same_weights(load_bilm(make_zip(tmp_path / "204", files)), model)


def test_a_zip_is_read_by_the_component(files, room, tmp_path):
    files = files | {"options.json": json.dumps(make_options(cell_clip=3, proj_clip=3)).encode()}
    make_folder(tmp_path / "folder", files)
    path = make_zip(tmp_path / "x.zip", files)
    expected = [doc.tensor for doc in make_nlp(tmp_path / "folder").pipe(TEXTS)]
    for _ in range(2):
        nlp = make_nlp(path)
        vectors = [doc.tensor for doc in nlp.pipe(TEXTS)]
        assert all(np.array_equal(a, b) for a, b in zip(vectors, expected, strict=True))
        gc.collect()
        assert not list(room.iterdir())  # while the component lives on
    path.unlink()
    nlp.to_disk(tmp_path / "saved")
    again = [doc.tensor for doc in spacy.load(tmp_path / "saved").pipe(TEXTS)]
    assert all(np.array_equal(a, b) for a, b in zip(again, expected, strict=True))


def test_two_files_are_read_by_the_component(files, tmp_path):
    folder = make_folder(tmp_path, files)
    nlp, paths = spacy.blank("en"), [str(folder / "model.hdf5"), str(folder / "options.json")]
    nlp.add_pipe("elmo", config={"model": {"weights": paths}})
    expected = make_nlp(folder)
    for text in TEXTS:
        assert np.array_equal(nlp(text).tensor, expected(text).tensor)


# ---- What is none


def test_other_kinds_of_model(files, tmp_path):
    many_langs = {
        name: b"{}"
        for name in ("config.json", "char.dic", "word.dic", "encoder.pkl", "token_embedder.pkl")
    }
    checkpoint = {
        name: b"{}"
        for name in ("checkpoint", "model.ckpt-9.data-00000-of-00001", "model.ckpt-9.index")
    } | {"options.json": files["options.json"]}
    for number, (content, said) in enumerate(
        [(many_langs, "ELMoForManyLangs"), (checkpoint, "dump_weights.py")]
    ):
        fails(make_folder(tmp_path / f"{number}", content), said)
        fails(make_zip(tmp_path / f"{number}.zip", content), said)
        fails(make_zip(tmp_path / f"{number}.zip", content, "ta.model/"), said)


@pytest.mark.parametrize("name", ["options.json", "model.hdf5"])
def test_one_file_of_two(name, files, tmp_path):
    fails(make_folder(tmp_path, files) / name, "Of two files give both", "weights = [")


@pytest.mark.parametrize("name", ["notes.txt", "vocab.txt", "weights.safetensors", "empty.zip"])
def test_a_file_of_something_else(name, tmp_path):
    fails(make_folder(tmp_path, {name: b""}) / name, "neither a directory", "incomplete", ".hdf5")


def test_a_directory_without_weights(tmp_path):
    fails(tmp_path, "has no config.json", "options.json")
    (tmp_path / "options.json").mkdir()
    (tmp_path / "model.hdf5").mkdir()
    fails(tmp_path, "has no config.json", "options.json")


def test_a_directory_with_one_of_two(files, tmp_path):
    fails(make_folder(tmp_path / "a", without(files, "model.hdf5")), "exactly one", "none")
    fails(make_folder(tmp_path / "b", without(files, "options.json")), "is no directory of weights")
    (tmp_path / "a" / "model.hdf5").mkdir()
    fails(tmp_path / "a", "exactly one", "none")


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["options.json", "other.json"],
        ["model.hdf5", "other.hdf5"],
        ["options.json", "model.hdf5", "vocab.txt"],
        ["options.json", "options.json"],
        ["config.json", "weights.safetensors"],
    ],
)
def test_a_list_of_something_else(names, tmp_path):
    fails([tmp_path / name for name in names], "options.json and an HDF5 file; found", *names)


@pytest.mark.parametrize("missing", ["options.json", "model.hdf5"])
def test_a_list_with_a_file_that_is_missing(missing, files, tmp_path):
    make_folder(tmp_path, without(files, missing))
    paths = [tmp_path / "options.json", tmp_path / "model.hdf5"]
    fails(paths, f"Cannot find the file '{tmp_path / missing}'")
    (tmp_path / missing).mkdir()
    fails(paths, f"Cannot find the file '{tmp_path / missing}'")


def test_a_list_with_a_zip(files, tmp_path):
    make_folder(tmp_path, files)
    path = make_zip(tmp_path / "x.zip", files)
    fails([tmp_path / "options.json", path], path, "Cannot read the HDF5 file")


def test_a_list_whose_files_are_of_different_models(files, tmp_path):
    make_folder(tmp_path / "a", files)
    (tmp_path / "b").mkdir()
    other = make_options(projection_dim=6)
    write(tmp_path / "b", other, {})
    fails([tmp_path / "b" / "options.json", tmp_path / "a" / "model.hdf5"], "(11, 5)", "(11, 6)")


# ---- Zips that are none


def test_a_zip_without_its_files(files, tmp_path):
    path = tmp_path / "x.zip"
    fails(make_zip(path, {}), "has no options.json")
    fails(make_zip(path, without(files, "options.json")), "has no options.json")
    fails(make_zip(path, files, "a/b/"), "has no options.json", "at its top or in a folder there")
    fails(make_zip(path, without(files, "model.hdf5")), "exactly one *.hdf5 file", "none")
    content = without(files, "model.hdf5") | {"weights/model.hdf5": files["model.hdf5"]}
    fails(make_zip(path, content), "exactly one *.hdf5 file", "none")
    content = without(content, "weights/model.hdf5") | {"a.hdf5": b"", "b.h5": b""}
    fails(make_zip(path, content), "exactly one *.hdf5 file", "a.hdf5, b.h5")
    content = without(files, "options.json") | {"options.json/": b"", "a/options.json/": b""}
    fails(make_zip(path, content), "has no options.json")


def test_a_zip_of_our_own_layout(model, tmp_path):
    save_bilm(model, tmp_path)
    content = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for prefix in ("", "de_sm/"):
        path = make_zip(tmp_path / "x.zip", content, prefix)
        fails(path, "x.zip' is a zip of config.json and weights.safetensors", "unpack it")


@pytest.mark.parametrize("prefixes", [("", "a/"), ("a/", "b/")])
def test_a_zip_of_two_models(prefixes, files, tmp_path):
    content = {f"{prefix}{name}": files[name] for prefix in prefixes for name in files}
    fails(make_zip(tmp_path / "x.zip", content), "has several options.json")


def snapshot(path: Path) -> dict[Path, bytes | None]:
    return {file: file.read_bytes() if file.is_file() else None for file in sorted(path.rglob("*"))}


@pytest.mark.timeout(60)  # `zipfile` of older Pythons looks for ever for the folder of //…
@pytest.mark.parametrize(
    "prefix",
    ["../", "../../", "/", "/tmp/", "//", "..\\", "\\", "a/../", "a/../../", "a//", "./../"],
)
@pytest.mark.parametrize("whole", [True, False])
def test_names_that_lead_out_of_a_zip(prefix, whole, files, tmp_path):
    content = {f"{prefix}{name}": data for name, data in files.items()}
    (tmp_path / "a" / "b").mkdir(parents=True)
    path = make_zip(tmp_path / "a" / "b" / "x.zip", {**(files if whole else {}), **content})
    before = snapshot(tmp_path)
    fails(path, "leads out of it")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("compression", [STORED, DEFLATED])
def test_a_truncated_zip(kept, compression, files, tmp_path):
    path = make_zip(tmp_path / "x.zip", files, compression=compression)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    fails(path, "a zip may be incomplete")


@pytest.mark.parametrize("lost", [20, 5000])
def test_a_zip_whose_begin_is_lost(lost, files, tmp_path):
    path = make_zip(tmp_path / "x.zip", files)
    path.write_bytes(path.read_bytes()[lost:])
    fails(path)


def patch(path: Path, change) -> None:
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


def uses(path: Path):
    """All that opens a file of its own."""
    weights = find_weights(path)
    return {
        "options.json": weights.config,
        "model.hdf5": weights.load,
        "vocab.txt": lambda: load_head(path),
        "meta.json": weights.card,
        "LICENSE": weights.card,
    }


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("compression", [STORED, DEFLATED])
def test_a_damaged_file_in_a_zip(name, compression, files, room, tmp_path):
    path = make_zip(tmp_path / "x.zip", files | OTHERS, compression=compression)
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(name)
    middle = info.header_offset + 30 + len(name) + info.compress_size // 2

    def damage(data):
        data[middle] ^= 0x04

    patch(path, damage)
    use = uses(path)[name]
    for _ in range(2):
        with pytest.raises(ValueError) as error:
            use()
        assert str(path) in str(error.value)
    assert compression == DEFLATED or "Bad CRC" in str(error.value)


def set_flags(data: bytearray, offset: int, value: int) -> None:
    """Set bits in the headers of all files: in front of each, and in the directory at the end."""
    for signature, extra in ((b"PK\x03\x04", 0), (b"PK\x01\x02", 2)):
        at = data.find(signature)
        while at >= 0:
            data[at + 4 + extra + offset] |= value
            at = data.find(signature, at + 1)


@pytest.mark.parametrize(
    ("offset", "value", "said"), [(2, 1, "encrypted"), (4, 99, "compression method")]
)
@pytest.mark.parametrize("name", PARTS)
def test_a_zip_that_cannot_be_unpacked(offset, value, said, name, files, tmp_path):
    path = make_zip(tmp_path / "x.zip", files | OTHERS, compression=STORED)
    patch(path, lambda data: set_flags(data, offset, value))
    with pytest.raises(ValueError, match=said) as error:
        uses(path)[name]()
    assert str(path) in str(error.value)


def test_a_zip_without_room_for_its_numbers(files, room, tmp_path, monkeypatch):
    path = make_zip(tmp_path / "x.zip", files)

    def full(*args):
        raise OSError(28, "No space left on device")

    weights = find_weights(path)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfileobj", full)
        with pytest.raises(ValueError, match="No space left") as error:
            weights.load()
    assert "x.zip/model.hdf5" in str(error.value)
    weights.load()


def test_a_zip_without_h5py(files, room, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    path = make_zip(tmp_path / "x.zip", files)
    folder = make_folder(tmp_path, files)
    for setting in (path, folder, [folder / "options.json", folder / "model.hdf5"]):
        assert find_weights(setting).config() == CONFIG
        fails(setting, "model.hdf5", "pip install 'spacy-elmo[hdf5]'")
    assert not list(room.iterdir())
