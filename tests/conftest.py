from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

# How streams are divided depends on it. PyTorch reads it when it is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from spacy.util import fix_random_seed

with suppress(ImportError):
    # PyTorch imports it when it trains. It wants to be first to import distutils, and Spark's tests
    # may import that one before.
    import setuptools  # noqa: F401

with suppress(ImportError):  # the tests for a GPU need no hypothesis
    from hypothesis import HealthCheck, settings

    # Examples run models, and the machine may be busy: time limits would fail at random.
    settings.register_profile(
        "no_limits", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("no_limits")


# The models here are tiny: threads would only wait for each other. And runs are the same to the
# last bit only where the number of threads is the same.
torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def empty_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Downloaded weights of whoever runs the tests have names, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPACY_ELMO_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def random_seed() -> None:
    """Each test begins with the same random numbers, alone as after others."""
    fix_random_seed(0)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
