"""What a user can get wrong: one clear error each."""

import json

import pytest
import spacy
import torch
from safetensors.torch import load, save_file

from spacy_elmo.util.files import atomic_directory
from spacy_elmo.weights.find import load_bilm
from spacy_elmo.weights.native import save_bilm

from .helpers import TEXTS, WIDTH, make_nlp

TINY = "golden_tiny"


def refuses(nlp, *parts: str) -> None:
    """The first Doc, initialize and to_disk raise the same ValueError, which says all this."""
    messages = []
    for use in (lambda: nlp(TEXTS[0]), nlp.initialize, nlp.get_pipe("elmo").to_bytes):
        with pytest.raises(ValueError) as caught:
            use()
        messages.append(str(caught.value))
    assert len(set(messages)) == 1
    for part in parts:
        assert part in messages[0]


@pytest.mark.parametrize("name", ["en_xl", "no/such/directory", "", "config.json"])
def test_missing_weights(name):
    nlp = make_nlp(name) if name else make_nlp("''")
    refuses(nlp, repr(name or "''"), "'weights'", "config.json", "no such directory")


def test_a_directory_of_something_else(tmp_path):
    refuses(make_nlp(tmp_path), str(tmp_path), "config.json", "Set 'weights' to a name")


def test_no_weights_file(own_weights):
    (own_weights / "weights.safetensors").unlink()
    refuses(make_nlp(own_weights), str(own_weights), "weights.safetensors")


@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: b"x" * 99]
)
def test_corrupt_weights(own_weights, damage):
    file = own_weights / "weights.safetensors"
    file.write_bytes(damage(file.read_bytes()))
    refuses(make_nlp(own_weights), str(file), "Cannot read")


def test_a_pickle_is_not_read(own_weights):
    file = own_weights / "weights.safetensors"
    torch.save(load(file.read_bytes()), file)
    refuses(make_nlp(own_weights), str(file), "Cannot read")


def change_tensors(weights, change):
    file = weights / "weights.safetensors"
    tensors = load(file.read_bytes())
    change(tensors)
    save_file(tensors, file)
    return str(file)


def test_missing_tensor(own_weights):
    file = change_tensors(own_weights, lambda tensors: tensors.pop("lstm.0.bias"))
    refuses(make_nlp(own_weights), file, "missing", "lstm.0.bias")


def test_unknown_tensor(own_weights):
    file = change_tensors(own_weights, lambda tensors: tensors.update(more=torch.zeros(1)))
    refuses(make_nlp(own_weights), file, "unknown", "more")


def test_tensor_of_a_wrong_shape(own_weights):
    def change(tensors):
        tensors["lstm.0.bias"] = tensors["lstm.0.bias"][:, 1:].contiguous()

    file = change_tensors(own_weights, change)
    refuses(make_nlp(own_weights), file, "lstm.0.bias", "(2, 63)", "(2, 64)")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("{", []),
        ("[1]", ["object"]),
        ('{"filters": [[1, 2]]}', ["projection_dim", "dim"]),
        ('{"filters": 3, "projection_dim": 8, "dim": 8}', ["filters"]),
        ('{"filters": [[1, 8]], "projection_dim": "8", "dim": 8}', ["projection_dim"]),
    ],
)
def test_invalid_config(own_weights, text, parts):
    (own_weights / "config.json").write_text(text)
    refuses(make_nlp(own_weights), str(own_weights / "config.json"), *parts)


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("activation", "gelu", "'gelu'"),
        ("n_layers", 0, "n_layers"),
        ("max_words", 400, "max_words"),
        ("cell_clip", "three", "cell_clip"),
    ],
)
def test_invalid_setting_of_the_bilm(own_weights, key, value, part):
    file = own_weights / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}))
    refuses(make_nlp(own_weights), str(file), part)


def test_invalid_card(own_weights):
    (own_weights / "meta.json").write_text("{")
    refuses(make_nlp(own_weights), str(own_weights / "meta.json"))


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [("max_words", 0, 8), ("max_words", 7, 8), ("batch_words", 0, 1), ("batch_words", -5, 1)],
)
def test_sizes(weights, name, value, least):
    with pytest.raises(ValueError, match=rf"{name} is {value}; .*greater than or equal to {least}"):
        make_nlp(weights, **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "choices"),
    [
        ("segments", "sent", ["auto", "sents", "doc"]),
        ("vectors", "vocabulary", ["auto", "elmo", "vocab"]),
        ("initial_state", "zeros", ["auto", "zero", "warm"]),
    ],
)
def test_misspelt_choices(weights, name, value, choices):
    with pytest.raises(ValueError, match=rf"""setting {name} (=|is) ['"]{value}['"]""") as caught:
        make_nlp(weights, **{name: value})
    for choice in choices:
        assert repr(choice) in str(caught.value)


@pytest.mark.parametrize("settings", [{"max_words": "many"}, {"frozen": "no!"}, {"max_word": 3}])
def test_settings_of_a_wrong_type_or_name(weights, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        make_nlp(weights, **settings)


def test_width(weights):
    refuses(make_nlp(weights, width=1024), "width = 1024", str(weights), f"{WIDTH}")
    assert make_nlp(weights, width=WIDTH)("a").tensor.shape == (1, WIDTH)


def test_weights_that_are_not_finite(weights, tmp_path):
    model = load_bilm(weights)
    with torch.no_grad():
        model.lstm[0].bias[0, 0] = torch.nan
    with atomic_directory(tmp_path / "nan") as directory:
        save_bilm(model, directory)
    refuses(make_nlp(tmp_path / "nan"), "lstm.0.bias", "finite")


def test_number_of_initial_weights(weights):
    nlp = make_nlp(weights, initial_weights=[1.0, 2.0])
    for use in (lambda: nlp("a"), nlp.initialize):
        with pytest.raises(ValueError, match=r"initial_weights has 2 .* 3 layers"):
            use()


def test_a_model_of_something_else():
    config = {"model": {"@architectures": "spacy.HashEmbedCNN.v2", "pretrained_vectors": None,
                        "width": 8, "depth": 1, "embed_size": 10, "window_size": 1,
                        "maxout_pieces": 2, "subword_features": True}}  # fmt: skip
    with pytest.raises(ValueError, match=r"spacy-elmo\.Elmo\.v1"):
        spacy.blank("en").add_pipe("elmo", config=config)
