from __future__ import annotations

from contextlib import suppress

import pytest
import torch

with suppress(ImportError):  # the tests for a GPU need no hypothesis
    from hypothesis import HealthCheck, settings

    # Examples run models, and the machine may be busy: time limits would fail at random.
    settings.register_profile(
        "no_limits", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("no_limits")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
