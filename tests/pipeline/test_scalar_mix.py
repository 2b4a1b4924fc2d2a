import numpy as np
import pytest
from thinc.api import Model

from spacy_elmo.pipeline.scalar_mix import EPSILON, ScalarMix

from .helpers import finite_difference

RNG = np.random.default_rng(0)
LAYERS = [RNG.normal(0, 2, (3, n, 6)).astype("float32") for n in (4, 0, 1)]
W, GAMMA = [0.3, -1.0, 2.0], 1.7


def make_mix(layer_norm: bool, in_float64: bool = False) -> Model:
    mix = ScalarMix(W, GAMMA, layer_norm)
    mix.initialize(X=LAYERS)
    if in_float64:
        for name in ("w", "gamma"):
            mix.set_param(name, mix.get_param(name).astype("float64"))
    return mix


def by_formula(layers: np.ndarray, w, gamma: float, layer_norm: bool) -> np.ndarray:
    h = layers.astype("float64")
    if layer_norm:
        h = (h - h.mean(axis=-1, keepdims=True)) / np.sqrt(h.var(axis=-1, keepdims=True) + EPSILON)
    s = np.exp(w) / np.exp(w).sum()
    return gamma * sum(s[j] * h[j] for j in range(len(h)))


@pytest.mark.parametrize("layer_norm", [False, True])
def test_same_as_the_formula(layer_norm):
    mix, inputs = make_mix(layer_norm), [*LAYERS, 0 * LAYERS[0]]
    for mixed in (mix.predict(inputs), mix.begin_update(inputs)[0]):
        for ours, layers in zip(mixed, inputs, strict=True):
            assert ours.dtype == np.float32
            expected = by_formula(layers, W, GAMMA, layer_norm)
            np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_large_weights_choose_a_layer(size):
    w = [-1000.0] * (size - 1) + [1000.0]
    (mixed,) = ScalarMix(w).predict([LAYERS[0][:size]])
    np.testing.assert_array_equal(mixed, LAYERS[0][size - 1])


@pytest.mark.parametrize(("layers", "index"), [("top", 2), (0, 0), (1, 1)])
def test_one_layer(layers, index):
    """It is exactly that layer, times γ, and remains it: γ alone is trained."""
    mix = ScalarMix(gamma=2.0, l2=0.5, layers=layers)
    for _ in range(2):
        mixed, backprop = mix.begin_update(LAYERS)
        gamma = mix.get_param("gamma")[0]
        for ours, expected in zip(mixed, LAYERS, strict=True):
            np.testing.assert_array_equal(ours, gamma * expected[index])
        d_layers = backprop(mixed)
        for ours, d_mixed in zip(d_layers, mixed, strict=True):
            np.testing.assert_array_equal(ours[index], gamma * d_mixed)
            assert not np.delete(ours, index, axis=0).any()
        assert not mix.has_grad("w")
        mix.finish_update(lambda key, param, grad: (param - 1e-3 * grad, grad))
    assert mix.get_param("gamma")[0] != 2.0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"layers": "bottom"}, "layers is 'bottom'; it must be 'all' or 'top' or"),
        ({"layers": -1}, "layers is -1; it must be 'all' or 'top' or"),
        ({"layers": True}, "layers is True; it must be 'all' or 'top' or"),
        ({"layers": 3}, r"layers is 3; this biLM has layers from 0 \(tokens\) to 2"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"l2": -0.1}, "l2 is -0.1"),
        ({"initial_weights": [0.0]}, r"initial_weights has 1 .* 3 layers"),
    ],
)
def test_settings(settings, said):
    with pytest.raises(ValueError, match=said):
        ScalarMix(**settings).predict(LAYERS)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_gradients(layer_norm):
    mix = make_mix(layer_norm, in_float64=True)
    inputs = [layers.astype("float64") for layers in LAYERS]
    factors = [RNG.normal(size=layers.shape[1:]) for layers in inputs]

    def loss() -> float:
        return sum(float((y * f).sum()) for y, f in zip(mix.predict(inputs), factors, strict=True))

    _, backprop = mix.begin_update(inputs)
    d_inputs = backprop(factors)
    for name in ("w", "gamma"):
        param = mix.get_param(name)
        expected = [finite_difference(loss, param, i, 1e-5) for i in range(len(param))]
        np.testing.assert_allclose(mix.get_grad(name), expected, rtol=1e-4, atol=1e-5)
        assert np.abs(expected).min() > 1e-3
    for d_input, layers in zip(d_inputs, inputs, strict=True):
        assert d_input.shape == layers.shape
        for place in np.ndindex(layers.shape):
            expected = finite_difference(loss, layers, place, 1e-5)
            np.testing.assert_allclose(d_input[place], expected, rtol=1e-4, atol=1e-5)


def test_read_only_input():
    layers = LAYERS[0].copy()
    layers.flags.writeable = False
    mix = make_mix(True)
    _, backprop = mix.begin_update([layers])
    gradient = np.ones(layers.shape[1:], dtype="float32")
    gradient.flags.writeable = False
    assert backprop([gradient])[0].shape == layers.shape
