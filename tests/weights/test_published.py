"""Published weights: read as they are meant, refused where they are not, written bit for bit."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.weights.convert.published import from_options, identities, write_published
from spacy_elmo.weights.convert.source import read_source
from spacy_elmo.weights.native import save_bilm

from ..bilm import reference
from ..bilm.helpers import (
    make_options,
    max_difference,
    read_datasets,
    run_bilm,
    run_carried,
    same_weights,
    write,
)
from .helpers import fails, read

h5py = pytest.importorskip("h5py")

FIXTURES = Path(__file__).parent.parent / "fixtures"
DATA = os.environ.get("SPACY_ELMO_DATA") or None
needs_data = pytest.mark.skipif(
    DATA is None, reason="the variable SPACY_ELMO_DATA names no folder with the large fixtures"
)
CELL = "RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell"
NO_PROJECTIONS = {"dim": 5, "filters": [[1, 2], [3, 3]]}


def load(path: Path):
    return json.loads(path.read_text(encoding="utf-8"))


def random_weights(options, dtype="f8"):
    weights = reference.random_weights(options, np.random.default_rng(0))
    return {name: values.astype(dtype) for name, values in weights.items()}


@pytest.fixture
def options():
    return make_options(cell_clip=3, proj_clip=3)


@pytest.fixture
def weights(options):
    return random_weights(options)


def assert_layers(model: BiLM, sentences, golden, tolerance: float = 1e-5) -> None:
    layers, _ = run_bilm(model.eval(), sentences)
    assert len(golden.files) == len(sentences)
    for i, ours in enumerate(layers):
        assert max_difference(ours, golden[f"s{i}"]) <= tolerance, i


# ---- The golden vectors of the reference implementation


def test_golden_tiny_from_zero():
    golden = np.load(FIXTURES / "golden_tiny" / "zero_state_layers.npz")
    assert_layers(read(FIXTURES / "golden_tiny"), load(FIXTURES / "sentences.json"), golden)


def test_golden_tiny_with_the_state_carried():
    golden = np.load(FIXTURES / "golden_tiny" / "carried_state_layers.npz")
    batches = load(FIXTURES / "carried_batches.json")
    model = read(FIXTURES / "golden_tiny").eval()
    assert len(golden.files) == sum(map(len, batches))
    for i, layers in enumerate(run_carried(model, batches)):
        for k, ours in enumerate(layers):
            assert max_difference(ours, golden[f"b{i}s{k}"]) <= 1e-5, (i, k)


@pytest.mark.data
@needs_data
def test_allennlp_tiny():
    """From zero; and with the state carried, whose files have the top layer's two directions."""
    folder = Path(DATA) / "fixtures" / "allennlp_tiny"
    model = read(folder / "options.json", folder / "lm_weights.hdf5")
    golden = np.load(folder / "zero_state_layers.npz")
    assert_layers(model, load(folder / "zero_state_sentences.json"), golden)
    rows = load(folder / "sentences.json")
    batches = [[text.split() for text in batch] for batch in zip(*rows, strict=True)]
    assert len(batches) == 10
    files = [h5py.File(folder / f"lm_embeddings_{row}.hdf5", "r") for row in range(len(rows))]
    for i, layers in enumerate(run_carried(model, batches)):
        for file, ours in zip(files, layers, strict=True):
            theirs = file[str(i)][()]  # (2, n_words, P)
            assert max_difference(ours[-1], np.concatenate(theirs, axis=1)) <= 1e-5, i


def make_random_weights(size: str, folder: Path) -> Path:
    tool = Path(DATA) / "tools" / "make_random_bilm.py"
    subprocess.run([sys.executable, tool, size, folder], check=True)
    return folder


@pytest.mark.data
@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("size", ["small", "medium", "original"])
def test_random_weights_of_the_published_sizes(size, tmp_path):
    # Sentence 11 is one word 48 times over: with these weights every step adds to the rounding
    # error of the steps before, and near its end the golden vectors, computed in float32, are
    # themselves 2.8e-5 to 3.2e-5 from the exact ones. So float32 is compared there as far as
    # they are good for it, and float64, which is exact, everywhere.
    long, horizon = 11, 20
    golden = np.load(Path(DATA) / "fixtures" / f"random_{size}" / "zero_state_layers.npz")
    sentences = load(FIXTURES / "sentences.json")
    model = read(make_random_weights(size, tmp_path)).eval()
    P = model.config.projection_dim
    single, _ = run_bilm(model, sentences)
    double, _ = run_bilm(model.double(), sentences)
    for i in range(len(sentences)):
        theirs = golden[f"s{i}"]
        if i == long:
            assert max_difference(double[i], theirs) <= 3.3e-5
            forward = np.s_[:, :horizon, :P]
            backward = np.s_[:, -horizon:, P:]
            assert max_difference(single[i][forward], theirs[forward]) <= 2e-5
            assert max_difference(single[i][backward], theirs[backward]) <= 2e-5
        else:
            assert max_difference(double[i], theirs) <= 2e-5, i
            assert max_difference(single[i], theirs) <= 2e-5, i


# ---- What may be in the files


@pytest.mark.parametrize(
    ("dtype", "changes"), [("<f2", {}), (">f4", NO_PROJECTIONS), (">f8", {"n_highway": 0})]
)
def test_any_float_type(changes, dtype, tmp_path):
    """In a file, projections that do nothing may stand where none is needed."""
    options = make_options(**changes)
    weights = random_weights(options, dtype)
    nothing = {name: a.astype(dtype) for name, a in identities(from_options(options)).items()}
    model = read(write(tmp_path, options, weights | nothing))
    assert all(p.dtype == torch.float32 and p.requires_grad for p in model.parameters())
    rounded = {name: values.astype("f4").astype(float) for name, values in weights.items()}
    [ours], _ = run_bilm(model.double().eval(), [["some", "words"]])
    theirs, _ = reference.read_sentence(options, rounded, ["some", "words"])
    assert max_difference(ours, theirs) <= 1e-9


def test_other_things_in_the_file_are_passed_over(options, weights, tmp_path):
    expected = read(write(tmp_path, options, weights))
    with h5py.File(tmp_path / "weights.hdf5", "a") as file:
        file.attrs["keras_version"] = "2"
        file["char_embed"].attrs["note"] = "bytes"
        file["softmax/W"] = h5py.Empty("f4")
        file["optimizer/RNN_0/slot"] = np.zeros(3)
        file["global_step"] = 7
        file["name"] = "a model"
        file["type"] = np.dtype("f4")
        file["lost"] = h5py.SoftLink("/nowhere")
        file["stored elsewhere"] = h5py.ExternalLink(tmp_path / "nowhere.hdf5", "/")
        file["CNN/again"] = file["/"]
        file.create_group("CNN_high_7")
    state = torch.random.get_rng_state()
    assert same_weights(read(tmp_path), expected)
    assert torch.equal(torch.random.get_rng_state(), state)  # reading draws no random numbers


# ---- What is wrong with the files is said


@pytest.mark.parametrize("name", ["char_embed", f"{CELL}/W_0"])
def test_a_dataset_that_is_missing_or_of_another_shape(name, options, weights, tmp_path):
    values = weights.pop(name)
    said = ("weights.hdf5", "options.json", f"'{name}'")
    fails(write(tmp_path, options, weights), *said, "missing")
    fails(write(tmp_path, options, weights | {f"{name}/inner": values}), *said, "missing")
    for other in (values[..., :-1], values[:-1], np.float32(1)):
        shapes = str(np.shape(other)), str(values.shape)
        fails(write(tmp_path, options, weights | {name: other}), *said, *shapes)


def zeros_but_one(shape: tuple[int, int], value: float) -> np.ndarray:
    values = np.zeros(shape)
    values[3, 2] = value
    return values


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("char_embed", np.zeros((261, 4), "int32"), "(261, 4) of torch.float32"),
        ("char_embed", np.full((261, 4), b"1.0"), "(261, 4) of torch.float32"),
        ("char_embed", h5py.Empty("f4"), "missing"),
        ("char_embed", zeros_but_one((261, 4), 1e300), "not finite"),
        (f"{CELL}/W_P_0", zeros_but_one((9, 5), np.nan), "not finite"),
    ],
)
def test_what_is_no_number_in_float32(name, values, said, options, weights, tmp_path):
    fails(write(tmp_path, options, weights | {name: values}), "weights.hdf5", said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dim": 12}, ["/W_0'", "(10, 36)", "(10, 48)"]),
        ({"n_layers": 3}, ["Cell2", "missing"]),
        ({"n_layers": 1}, ["is not described"]),
        ({"n_highway": 0}, ["is not described"]),
    ],
)
def test_the_options_of_another_model(changes, said, weights, tmp_path):
    fails(write(tmp_path, make_options(**changes), weights), "weights.hdf5", *said)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (f"{CELL}/W_P_0", np.eye(5) * (1 + 2**-23)),
        ("CNN_proj/b_proj", np.full(5, 1e-30)),
        ("CNN/W_cnn_2", np.eye(5)),
    ],
)
def test_projections_and_filters_that_are_no_part_of_the_model(name, values, tmp_path):
    options = make_options(**NO_PROJECTIONS)
    weights = random_weights(options) | {name: values}
    fails(write(tmp_path, options, weights), f"'{name}' belongs to a part")


def test_one_direction(options, weights, tmp_path):
    fails(write(tmp_path, options | {"bidirectional": False}, weights), "'bidirectional' is false")
    forward = {n: values for n, values in weights.items() if not n.startswith("RNN_1")}
    fails(write(tmp_path, options, forward), "missing tensors ['RNN_1/")


@pytest.mark.parametrize("kind", ["link", "virtual", "raw"])
def test_numbers_in_another_file_are_not_read(kind, options, weights, tmp_path):
    folder, other = tmp_path / "model", tmp_path / "other.h5"
    folder.mkdir()
    write(folder, options, weights)
    with h5py.File(other, "w") as file:
        file["bytes"] = weights["char_embed"]
    weights["char_embed"].tofile(tmp_path / "raw")
    with h5py.File(folder / "weights.hdf5", "a") as file:
        del file["char_embed"]
        if kind == "link":
            file["z"] = h5py.ExternalLink(other, "/bytes")
            file["char_embed"] = h5py.SoftLink("/z")
        elif kind == "virtual":
            layout = h5py.VirtualLayout((261, 4), "f8")
            layout[:] = h5py.VirtualSource(other, "bytes", (261, 4))
            file.create_virtual_dataset("char_embed", layout)
        else:
            at = [(str(tmp_path / "raw"), 0, 261 * 4 * 8)]
            file.create_dataset("char_embed", (261, 4), "f8", external=at)
        assert np.array_equal(file["char_embed"], weights["char_embed"])  # if it were read
    other.unlink()
    os.mkfifo(other)  # it is not even opened, which would never end
    fails(folder, "weights.hdf5", "missing tensors ['char_embed']")


def damage_a_chunk(path: Path) -> None:
    with h5py.File(path, "a") as file:
        values = file["char_embed"][()]
        del file["char_embed"]
        chunk = file.create_dataset("char_embed", data=values, compression="gzip").id
        chunk = chunk.get_chunk_info(0)
    with path.open("r+b") as raw:
        raw.seek(chunk.byte_offset)
        raw.write(b"\xff" * chunk.size)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"<html>404</html>"),
        lambda path: path.write_bytes(path.read_bytes()[:-9]),
        damage_a_chunk,
    ],
)
def test_damaged_hdf5(damage, options, weights, tmp_path):
    damage(write(tmp_path, options, weights) / "weights.hdf5")
    fails(tmp_path, "Cannot read the HDF5 file", "weights.hdf5")


def test_files_that_are_missing_or_too_many(options, weights, tmp_path):
    file = write(tmp_path, options, weights) / "weights.hdf5"
    shutil.copy(file, tmp_path / "more.hdf5")
    fails(tmp_path, "exactly one *.hdf5 file", "'more.hdf5', 'weights.hdf5'")
    fails(tmp_path / "nowhere", "no such directory")


@pytest.mark.parametrize(
    "content",
    [
        *("{", "[]", '{"char_cnn": null, "lstm": {}}'),
        json.dumps({**make_options(), "char_cnn": None, "n_tokens_vocab": 7}),  # reads words
        json.dumps(make_options(cell_clip="3")),
    ],
)
def test_options_of_something_else(content, options, weights, tmp_path):
    write(tmp_path, options, weights)
    (tmp_path / "options.json").write_text(content, encoding="utf-8")
    fails(tmp_path, "Cannot read the ", "options.json")


def test_without_h5py_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "h5py", None)
    fails(FIXTURES / "golden_tiny", "pip install 'spacy-elmo[hdf5]'")
    with pytest.raises(ValueError, match=r"pip install 'spacy-elmo\[hdf5\]'") as error:
        write_published(BiLM(from_options(make_options())), tmp_path)
    assert str(tmp_path / "model.hdf5") in str(error.value)
    assert not list(tmp_path.iterdir())


# ---- Writing


def random_bilm(config: BiLMConfig, seed: int) -> BiLM:
    """Numbers of all kinds: some fit into half precision, some are next to nothing, or -0."""
    generator = torch.Generator().manual_seed(seed)
    model = BiLM(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(generator=generator)
            # The LSTM bounds what its weights compute; large ones elsewhere multiply, and loading
            # refuses what overflows.
            scales = torch.tensor([1.0, 1e-42, -0.0, 1e5 if name.startswith("lstm") else 1e2])
            places = torch.randint(len(scales), parameter.shape, generator=generator)
            parameter.mul_(scales[places])
            if torch.rand((), generator=generator) < 0.3:
                parameter.copy_(parameter.clamp(-9, 9).half())
    return model


@pytest.mark.parametrize(
    "changes",
    [
        {},
        NO_PROJECTIONS,
        {"n_layers": 3, "n_highway": 0, "cell_clip": 3.0, "use_skip_connections": False},
        {"n_layers": 1, "n_highway": 2, "proj_clip": 0.5, "activation": "tanh"},
        {"max_characters_per_token": 8},
    ],
)
def test_from_layout_to_layout(changes, tmp_path):
    """Not a bit changes; what is written has all that other implementations read."""
    config = replace(
        from_options(make_options(**changes)), unicode_normalization="NFC", lower_capitals=True
    )
    model = random_bilm(config, 0)
    own, published, own_again, published_again = (tmp_path / name for name in "abcd")
    for path in (own, published, own_again, published_again):
        path.mkdir()
    save_bilm(model, own)
    write_published(read(own).double(), published)  # whatever computes
    save_bilm(read(published), own_again)
    write_published(read(own_again), published_again)
    for path in (own, published, own_again, published_again):
        assert read(path).config == config
        assert same_weights(read(path), model)
        for name in ("config.json", "weights.safetensors"):
            assert (own / name).read_bytes() == (own_again / name).read_bytes()
        assert load(published / "options.json") == load(published_again / "options.json")
        one, other = (read_datasets(path / "model.hdf5") for path in (published, published_again))
        assert one.keys() == other.keys()
        assert {"CNN_proj/W_proj", "CNN_proj/b_proj", f"{CELL}/W_P_0"} <= one.keys()
        assert all(one[name].tobytes() == other[name].tobytes() for name in one)
        assert all(values.dtype == np.dtype("<f4") for values in one.values())


# ---- Cards


def test_the_card_of_a_published_model(options, weights, tmp_path):
    """It has the keys of another project, unless the model was ours."""
    write(tmp_path, options, weights)
    (tmp_path / "meta.json").write_text('{"lang": "ta"}', encoding="utf-8")
    assert read_source([tmp_path]).card.meta == {"lang": "ta"}
    del options["spacy_elmo"]
    write(tmp_path, options, weights)
    meta = read_source([tmp_path]).card.meta
    assert meta == {"published": {"lang": "ta"}}  # not a language code of ours
    assert read_source([tmp_path / "options.json", tmp_path / "weights.hdf5"]).card.meta == {}
    (tmp_path / "meta.json").write_text("lang: ta", encoding="utf-8")
    fails(tmp_path, "Cannot read the JSON file", "meta.json")
