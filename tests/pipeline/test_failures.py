"""What a user can get wrong: one clear error each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spacy
import torch
from safetensors.torch import load, save

from .helpers import TEXTS, WIDTH, make_nlp

MIX = {"@architectures": "spacy-elmo.ScalarMix.v1"}
Change = Callable[[bytes], bytes]  # of a file


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


def changed(name: str, tensor: torch.Tensor | None) -> Change:
    """Weights with another tensor of a name, or without."""

    def change(data: bytes) -> bytes:
        tensors = load(data)
        tensors.pop(name, None)
        return save(tensors | ({} if tensor is None else {name: tensor}))

    return change


@pytest.mark.parametrize(
    ("name", "change", "parts"),
    [
        ("weights.safetensors", lambda data: data[: len(data) // 2], ["Cannot read"]),
        ("weights.safetensors", changed("lstm.0.bias", None), ["missing", "lstm.0.bias"]),
        ("weights.safetensors", changed("more", torch.zeros(1)), ["unknown", "more"]),
        (
            "weights.safetensors",
            changed("lstm.0.bias", torch.full((2, 64), torch.nan)),
            ["lstm.0.bias", "finite"],
        ),
        ("config.json", lambda data: b"{", []),
        ("config.json", lambda data: data.replace(b'"relu"', b'"gelu"'), ["'gelu'"]),
        ("meta.json", lambda data: b"{", []),
    ],
)
def test_damaged_weights(own_weights: Path, name: str, change: Change, parts: list[str]) -> None:
    file = own_weights / name
    file.write_bytes(change(file.read_bytes()))
    refuses(make_nlp(own_weights), str(file), *parts)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("max_words", 7, "max_words is 7; .*greater than or equal to 8"),
        ("max_word", 3, "max_word"),
        ("threads", 0, "setting threads is 0"),
        ("learn_rate_factor", 0, "learn_rate_factor is 0; it must be greater than 0"),
        ("learn_rate_factor", 0.1, "'learn_rate_factor' is 0.1, but the biLM is frozen"),
        ("mix", {**MIX, "initial_weights": [0, 1, 0], "layers": "top"}, "initial_weights"),
        ("cache_mb", -1, "cache_mb is -1; .*greater than or equal to 0"),
        ("segments", "sent", "setting segments is 'sent'; .*'auto', 'sents' or 'doc'"),
        ("initial_state", "zeros", "setting initial_state is 'zeros'; .*'auto', 'zero' or 'warm'"),
        ("vectors", "vocabulary", "'vocabulary'.*'auto', 'elmo', 'vocab'"),
        ("store", ["all"], "'all'.*'layers', 'vectors'"),
    ],
)
def test_settings(weights: Path, name: str, value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_nlp(weights, **{name: value})


def test_width(weights):
    refuses(make_nlp(weights, width=1024), "width = 1024", str(weights), f"{WIDTH}")
    nlp = make_nlp(weights, width=WIDTH)
    assert nlp("a").tensor.shape == (1, WIDTH)
    nlp.config["components"]["elmo"]["model"]["width"] = 1024
    with pytest.raises(ValueError, match=r"width = 1024 does not fit.* set it to 16"):
        spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
