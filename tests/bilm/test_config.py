import tracemalloc
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.char_word_cnn import pack_words, unpack_words
from spacy_elmo.bilm.config import MAX_CHARACTERS, MAX_UNITS, BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.weights.convert.published import from_options

from .helpers import make_options

SMALL = BiLMConfig(filters=((1, 4), (3, 8)), projection_dim=6, dim=12)


def test_what_options_may_leave_out():
    options = make_options()
    defaults = {"n_layers": 1, "cell_clip": None, "proj_clip": None, "use_skip_connections": False}
    for name in defaults:
        options["lstm"].pop(name, None)
    for name in ("n_highway", "max_characters_per_token", "n_characters"):
        del options["char_cnn"][name]
    expected = {**defaults, "n_highway": 0, "max_characters_per_token": 50}
    assert from_options(options) == replace(from_options(make_options()), **expected)


BAD = {
    "filters": [[], None, [3], [[1, 2, 3]], [["one", 2]], [[0, 2]], [[1, 0]], [[51, 4]]],
    "projection_dim": [0, 6.0, "6", 13, 10**30],
    "dim": [None, -1, 2**31],
    "n_layers": [0, True, 1001],
    "char_dim": [0, 10**30],
    "n_highway": [-1, None, 10**30],
    "max_characters_per_token": [2, 2**31],
    "cell_clip": [0, -3, float("nan"), 1e308],
    "proj_clip": [0],
    "activation": ["gelu", None],
    "initial_state": ["cold"],
    "unicode_normalization": ["nfc"],
    "token_encoder": ["vectors", "char_word_cnn"],
    "n_words": [0],
}
BAD["filters"] += [[[1, 2**31]], [[1, 10**30]], [[10**30, 1]], [[1, 1]] * 1001]


@pytest.mark.parametrize(("name", "value"), [(n, value) for n in BAD for value in BAD[n]])
def test_a_bad_value_is_named(name, value):
    with pytest.raises(ValueError, match=f"^biLM config: {name} is "):
        replace(SMALL, **{name: value})


def test_dictionaries_are_of_another_token_encoder():
    sizes = {"n_characters": 9, "n_words": 5, "vector_dim": 4}
    config = replace(SMALL, token_encoder="char_word_cnn", **sizes)
    assert BiLMConfig.from_dict(config.to_dict()) == config
    with pytest.raises(ValueError, match="token_encoder is 'char_cnn'"):
        replace(SMALL, **sizes)


@given(st.lists(st.text(st.characters()), max_size=20))
def test_entries_of_any_characters(words):
    assert unpack_words(pack_words(words)) == words


def test_unknown_and_missing_settings_are_named():
    data = SMALL.to_dict()
    with pytest.raises(ValueError, match=r"unknown settings \['n_heads'\]"):
        BiLMConfig.from_dict({**data, "n_heads": 8})
    del data["filters"]
    with pytest.raises(ValueError, match=r"'filters'.*missing"):
        BiLMConfig.from_dict(data)


@pytest.mark.parametrize(
    "changes",
    [
        {"filters": [[1, MAX_UNITS]] * 1000},
        {"filters": [[MAX_CHARACTERS, 1]], "max_characters_per_token": MAX_CHARACTERS},
        {"char_dim": MAX_UNITS, "max_characters_per_token": 100},
    ],
)
def test_filters_that_need_too_much_memory_are_refused_before_any_is_taken(changes):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"filters is .* too much memory"):
            BiLMConfig.from_dict(SMALL.to_dict() | changes)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_the_largest_sizes_overflow_nothing():
    most = BiLMConfig(
        filters=((1, MAX_UNITS),),
        projection_dim=MAX_UNITS,
        dim=MAX_UNITS,
        n_highway=1,
        max_characters_per_token=2**12,
    )
    with torch.device("meta"):
        for filters in (most.filters, ((2**12, 2**12),)):
            model = BiLM(replace(most, filters=filters))
            assert sum(p.numel() for p in model.parameters()) > 2**42
