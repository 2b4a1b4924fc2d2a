"""The published datasets as arrays: names, shapes, and the way to the parameters and back."""

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.weights.convert.datasets import (
    dataset_names,
    dataset_shapes,
    identity,
    identity_shapes,
    to_datasets,
    to_parameters,
)
from spacy_elmo.weights.convert.options import from_options

from ..bilm import reference
from ..bilm.helpers import make_options


def identities(config):
    return {name: identity(shape) for name, shape in identity_shapes(config).items()}


CELL = "RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell"
NO_PROJECTIONS = {"dim": 5, "filters": [[1, 2], [3, 3]]}
SHAPES = [
    {},
    {"n_layers": 3, "n_highway": 0},
    {"dim": 5},  # cells without a projection
    {"filters": [[1, 2], [3, 3]]},  # characters without a projection
]


def make(**changes):
    """Options' config, and random weights for it."""
    options = make_options(**changes)
    weights = reference.random_weights(options, np.random.default_rng(0))
    return from_options(options), weights


@pytest.mark.parametrize("changes", SHAPES)
def test_state_dict_has_all_parameters_and_no_others(changes):
    config, weights = make(**changes)
    state = to_parameters(config, weights)
    expected = BiLM(config).state_dict()
    assert {name: tensor.shape for name, tensor in state.items()} == {
        name: tensor.shape for name, tensor in expected.items()
    }
    assert all(tensor.dtype == torch.float32 for tensor in state.values())
    assert all(tensor.is_contiguous() for tensor in state.values())
    assert {name: values.shape for name, values in weights.items()} == dataset_shapes(config)


def test_state_dict_shares_no_memory_with_the_arrays():
    config, weights = make()
    weights = {name: values.astype(np.float32) for name, values in weights.items()}
    copies = {name: values.copy() for name, values in weights.items()}
    for tensor in to_parameters(config, weights).values():
        tensor.fill_(7.0)
    for name, values in weights.items():
        np.testing.assert_array_equal(values, copies[name])


@pytest.mark.parametrize("changes", SHAPES)
def test_parameters_become_the_same_datasets_again(changes):
    config, weights = make(**changes)
    again = dict(to_datasets(config, to_parameters(config, weights)))
    nothing = identities(config)
    assert set(again) == {*weights, *nothing}
    for name, values in again.items():
        assert values.dtype == np.float32
        np.testing.assert_array_equal(values, weights.get(name, nothing.get(name)))


# ---- Projections where the sizes agree already


def test_identities_stand_for_the_projections_that_are_not_needed():
    config, _ = make(**NO_PROJECTIONS)
    names = {f"RNN_{d}/RNN/MultiRNNCell/Cell{n}/LSTMCell/W_P_0" for d in (0, 1) for n in (0, 1)}
    arrays = identities(config)
    assert set(arrays) == {"CNN_proj/W_proj", "CNN_proj/b_proj", *names}
    for name, values in arrays.items():
        expected = np.zeros(5) if name == "CNN_proj/b_proj" else np.eye(5)
        np.testing.assert_array_equal(values, expected)
    assert identities(make()[0]) == {}


@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f8"])
def test_identities_are_passed_over(dtype):
    config, weights = make(**NO_PROJECTIONS)
    extended = weights | {name: a.astype(dtype) for name, a in identities(config).items()}
    ours, expected = to_parameters(config, extended), to_parameters(config, weights)
    assert ours.keys() == expected.keys()
    assert all(torch.equal(ours[name], expected[name]) for name in ours)


def nearly(eye: np.ndarray) -> np.ndarray:
    eye[1, 2] = 1e-30
    return eye


def with_nan(eye: np.ndarray) -> np.ndarray:
    eye[1, 2] = np.nan
    return eye


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (f"{CELL}/W_P_0", nearly(np.eye(5))),
        (f"{CELL}/W_P_0", np.eye(5) * (1 + 2**-23)),
        (f"{CELL}/W_P_0", np.eye(6)),
        (f"{CELL}/W_P_0", np.eye(5, 4)),
        (f"{CELL}/W_P_0", np.float32(1)),
        (f"{CELL}/W_P_0", with_nan(np.eye(5))),
        (f"{CELL}/W_P_0", np.full((5, 5), b"1")),
        (f"{CELL}/W_P_0", np.zeros((5, 5), dtype=[("real", "f4"), ("imaginary", "f4")])),
        ("CNN_proj/W_proj", np.zeros((5, 5))),
        ("CNN_proj/b_proj", np.full(5, 1e-30)),
    ],
)
def test_other_projections_are_no_part_of_the_model(name, values):
    config, weights = make(**NO_PROJECTIONS)
    weights |= identities(config) | {name: values}
    with pytest.raises(ValueError, match=rf"here: .*'{name}' belongs to a part that options\.json"):
        to_parameters(config, weights, "here")


@pytest.mark.parametrize("name", [CELL.replace("Cell1", "Cell2") + "/W_0", "CNN/W_cnn_2"])
def test_more_layers_or_filters_are_no_part_of_the_model(name):
    config, weights = make(**NO_PROJECTIONS)
    with pytest.raises(ValueError, match=rf"'{name}' belongs to a part"):
        to_parameters(config, weights | {name: np.eye(5)})
    assert name in dataset_names(config)
