"""The biLM in plain NumPy, float64, one sentence and one step at a time.

Written from the definitions alone and independent of the package: the tests compare the two.
Weights are a dict in the published HDF5 layout, options a published ``options.json``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Options = dict[str, Any]
Weights = dict[str, np.ndarray]
State = tuple[np.ndarray, np.ndarray]  # h (L, 2, P), c (L, 2, D)

BYTE_BOS, BYTE_EOS, BYTE_BOW, BYTE_EOW, BYTE_PAD = 256, 257, 258, 259, 260


def char_ids(word: str, max_characters: int = 50) -> list[int]:
    """All ``max_characters`` ids of a word, shifted by one."""
    if word == "<S>":
        middle = [BYTE_BOS]
    elif word == "</S>":
        middle = [BYTE_EOS]
    else:
        text = "".join(char for char in word if not 0xD800 <= ord(char) <= 0xDFFF)
        middle = list(text.encode("utf-8"))[: max_characters - 2]
    ids = [BYTE_BOW, *middle, BYTE_EOW]
    while len(ids) < max_characters:
        ids.append(BYTE_PAD)
    return [number + 1 for number in ids]


def encode_word(options: Options, weights: Weights, word: str) -> np.ndarray:
    """x of one word, ``(P,)``."""
    cnn = options["char_cnn"]
    # Row 0 of the full table stands for "no token here"; the file starts with row 1.
    table = np.vstack([np.zeros((1, cnn["embedding"]["dim"])), weights["char_embed"]])
    chars = table[char_ids(word, cnn.get("max_characters_per_token", 50))]
    features = []
    for i, (width, number) in enumerate(cnn["filters"]):
        kernel, bias = weights[f"CNN/W_cnn_{i}"], weights[f"CNN/b_cnn_{i}"]
        best = np.full(number, -np.inf)
        for start in range(len(chars) - width + 1):
            window = bias.copy()
            for offset in range(width):
                window += chars[start + offset] @ kernel[0, offset]
            best = np.maximum(best, window)
        features.append(np.maximum(best, 0.0) if cnn["activation"] == "relu" else np.tanh(best))
    x = np.concatenate(features)
    for k in range(cnn.get("n_highway") or 0):
        layer = f"CNN_high_{k}"
        gate = sigmoid(x @ weights[f"{layer}/W_carry"] + weights[f"{layer}/b_carry"])
        new = x @ weights[f"{layer}/W_transform"] + weights[f"{layer}/b_transform"]
        x = gate * np.maximum(new, 0.0) + (1.0 - gate) * x
    if len(x) != options["lstm"]["projection_dim"]:
        x = x @ weights["CNN_proj/W_proj"] + weights["CNN_proj/b_proj"]
    return x


def read_lstm(
    options: Options,
    weights: Weights,
    direction: int,
    layer: int,
    inputs: list[np.ndarray],
    h: np.ndarray,
    c: np.ndarray,
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Outputs for the inputs in the order they are given, and the last h and c."""
    lstm = options["lstm"]
    cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
    cell_clip, proj_clip = lstm.get("cell_clip"), lstm.get("proj_clip")
    outputs = []
    for x in inputs:
        gates = np.concatenate([x, h]) @ weights[f"{cell}/W_0"] + weights[f"{cell}/B"]
        i, j, f, o = np.split(gates, 4)
        c = sigmoid(f + 1.0) * c + sigmoid(i) * np.tanh(j)
        if cell_clip is not None:
            c = np.clip(c, -cell_clip, cell_clip)
        h = sigmoid(o) * np.tanh(c)
        if lstm["projection_dim"] < lstm["dim"]:
            h = h @ weights[f"{cell}/W_P_0"]
            if proj_clip is not None:
                h = np.clip(h, -proj_clip, proj_clip)
        outputs.append(h)
    return outputs, h, c


def read_sentence(
    options: Options, weights: Weights, words: list[str], state: State | None = None
) -> tuple[np.ndarray, State]:
    """Layers ``(L + 1, n_words, 2P)`` without the boundaries, and the state at the end."""
    lstm = options["lstm"]
    n_layers = lstm.get("n_layers", 1)
    P, D = lstm["projection_dim"], lstm["dim"]
    if state is None:
        state = np.zeros((n_layers, 2, P)), np.zeros((n_layers, 2, D))
    last_h, last_c = np.empty((n_layers, 2, P)), np.empty((n_layers, 2, D))
    bounded = ["<S>", *words, "</S>"]
    vectors = {word: encode_word(options, weights, word) for word in set(bounded)}
    encoded = [vectors[word] for word in bounded]
    layers = np.empty((n_layers + 1, len(encoded), 2 * P))
    layers[0] = np.hstack([encoded, encoded])
    for direction in range(2):
        inputs = encoded if direction == 0 else encoded[::-1]
        for layer in range(n_layers):
            outputs, last_h[layer, direction], last_c[layer, direction] = read_lstm(
                options, weights, direction, layer, inputs,
                state[0][layer, direction], state[1][layer, direction],
            )  # fmt: skip
            if layer > 0 and lstm.get("use_skip_connections"):
                outputs = [out + x for out, x in zip(outputs, inputs, strict=True)]
            in_place = outputs if direction == 0 else outputs[::-1]
            layers[layer + 1, :, direction * P : (direction + 1) * P] = in_place
            inputs = outputs
    return layers[:, 1:-1], (last_h, last_c)


def random_weights(options: Options, rng: np.random.Generator, scale: float = 1.0) -> Weights:
    """Weights for the options, each a float32 number held as float64.

    ``scale`` is that of the LSTMs: from 2 or so, clips of 1 are reached often.
    """
    cnn, lstm = options["char_cnn"], options["lstm"]
    char_dim, P, D = cnn["embedding"]["dim"], lstm["projection_dim"], lstm["dim"]
    n_filters = sum(number for _, number in cnn["filters"])

    def normal(*shape: int, std: float) -> np.ndarray:
        return rng.normal(0.0, std, shape).astype(np.float32).astype(np.float64)

    weights = {"char_embed": normal(261, char_dim, std=0.6)}
    for i, (width, number) in enumerate(cnn["filters"]):
        weights[f"CNN/W_cnn_{i}"] = normal(
            1, width, char_dim, number, std=(width * char_dim) ** -0.5
        )
        weights[f"CNN/b_cnn_{i}"] = normal(number, std=0.2)
    for k in range(cnn.get("n_highway") or 0):
        for gate in ("carry", "transform"):
            weights[f"CNN_high_{k}/W_{gate}"] = normal(n_filters, n_filters, std=n_filters**-0.5)
            weights[f"CNN_high_{k}/b_{gate}"] = normal(n_filters, std=0.3)
    if n_filters != P:
        weights["CNN_proj/W_proj"] = normal(n_filters, P, std=2.0 * n_filters**-0.5)
        weights["CNN_proj/b_proj"] = normal(P, std=0.2)
    for direction in range(2):
        for layer in range(lstm.get("n_layers", 1)):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            weights[f"{cell}/W_0"] = normal(2 * P, 4 * D, std=scale * (2 * P) ** -0.5)
            weights[f"{cell}/B"] = normal(4 * D, std=0.3)
            if P < D:
                weights[f"{cell}/W_P_0"] = normal(D, P, std=scale * D**-0.5)
    return weights


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))
