"""The processors that a process may use: from system files, and over time."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest

from spacy_elmo.util import processors
from spacy_elmo.util.processors import (
    INTERVAL,
    MAX_AGE,
    FreeProcessors,
    Limit,
    Sample,
    free_between,
    limits,
    usable_processors,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the files of Linux")

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@pytest.fixture(autouse=True)
def two_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is bound to the first and the third processor."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda number: {0, 2})


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def stat(*seconds: float) -> str:
    """``/proc/stat`` of processors that have been busy for so long."""
    lines = ["cpu  1 2 3 4 5 6 7 8 9 10"]
    for number, busy in enumerate(seconds):
        lines.append(f"cpu{number} {round(busy * TICKS)} 0 0 987 65 0 0 0 4 3")
    return "\n".join([*lines, "intr 12 0 0", "ctxt 5"]) + "\n"


def test_time_of_the_processors_that_it_is_bound_to(tmp_path: Path) -> None:
    root = write(tmp_path, {"proc/stat": stat(10, 500, 2, 500)})
    assert list(limits(root)) == [Limit(2, 12)]
    parts = "cpu0 1 2 4 1000 1000 8 16 32 9 9"  # not idle, not waiting; guests are users
    write(root, {"proc/stat": parts})
    assert list(limits(root)) == [Limit(2, 63 / TICKS)]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 2),
        ({"proc/self/cgroup": "0::/\n"}, 2),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 2),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        (
            {
                "proc/self/cgroup": "0::/outer/inner\n",
                "sys/fs/cgroup/outer/inner/cpu.max": "max 100000\n",
                "sys/fs/cgroup/outer/cpu.max": "50000 100000\n",
            },
            0.5,
        ),
        (  # the path is that outside of the container
            {
                "proc/self/cgroup": "0::/docker/1234\n",
                "sys/fs/cgroup/cpu.max": "100000 100000\n",
            },
            1,
        ),
        ({"proc/self/cgroup": "0::/../../other\n", "sys/fs/cgroup/cpu.max": "nonsense"}, 2),
        (
            {
                "proc/self/cgroup": "3:memory:/a\n2:cpu,cpuacct:/a\n0::/\n",
                "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "120000\n",
                "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
            },
            1.2,
        ),
        (
            {
                "proc/self/cgroup": "1:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
    ],
)
def test_affinity_and_quota(tmp_path: Path, files: dict[str, str], expected: float) -> None:
    assert usable_processors(write(tmp_path, files)) == expected


def test_time_used_by_control_groups(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "1:cpu:/old\n0::/new\n",
            "sys/fs/cgroup/cpu/old/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/old/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu/old/cpuacct.usage": "3500000000\n",
            "sys/fs/cgroup/new/cpu.max": "200000 100000\n",
            "sys/fs/cgroup/new/cpu.stat": "usage_usec 1250000\nuser_usec 1000000\n",
        },
    )
    assert list(limits(root)) == [Limit(2, 0), Limit(inf, 3.5), Limit(2, 1.25)]


@pytest.mark.parametrize(
    ("used", "own", "expected"),
    [
        (0, 0, 2),
        (4, 4, 2),  # all by this process
        (2, 0, 1),  # a busy process, while this one did nothing
        (4, 2, 1),
        (4, 1.5, 0.75),
        (3.9, 4, 2),  # counted at another moment
    ],
)
def test_what_others_leave_free_in_two_seconds(used: float, own: float, expected: float) -> None:
    before = Sample(10, 5, [Limit(2, 100)])
    after = Sample(12, 5 + own, [Limit(2, 100 + used)])
    assert free_between(before, after) == pytest.approx(expected)


def test_a_quota_is_shared_with_the_others_of_its_group() -> None:
    before = Sample(0, 0, [Limit(64, 0), Limit(2, 0)])
    after = Sample(1, 0.5, [Limit(64, 40), Limit(2, 1.5)])
    assert free_between(before, after) == pytest.approx(1)


class Machine:
    """Two processors, and the time; `pass_time` lets others use them, and this process too."""

    def __init__(self, root: Path):
        self.root, self.now, self.own, self.used = root, 100.0, 3.0, 50.0
        self.pass_time(0)

    def pass_time(self, seconds: float, others: float = 0, own: float = 0) -> None:
        self.now += seconds
        self.own += own * seconds
        self.used += (own + others) * seconds
        write(self.root, {"proc/stat": stat(self.used)})

    def free(self) -> FreeProcessors:
        return FreeProcessors(self.root, lambda: self.now, lambda: self.own)


def test_free_processors_over_time(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    free = machine.free()
    assert free() == 1  # nothing is known yet
    machine.pass_time(INTERVAL / 2, own=1)
    assert free() == 1
    machine.pass_time(INTERVAL, own=1)
    assert free() == pytest.approx(2, abs=0.1)
    machine.pass_time(1, others=1, own=1)
    assert free() == pytest.approx(1, abs=0.1)
    machine.pass_time(1, own=1)
    assert free() == pytest.approx(1, abs=0.1)  # a pause of the other, perhaps
    machine.pass_time(1, own=2)
    assert free() == pytest.approx(2, abs=0.1)
    machine.pass_time(MAX_AGE + 1)
    assert free() == 1  # known no more
    machine.pass_time(1)
    assert free() == pytest.approx(2, abs=0.1)


def test_samples_are_not_taken_more_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, taken = Machine(tmp_path), []
    real: Callable[[Path], object] = processors.limits
    monkeypatch.setattr(processors, "limits", lambda root: taken.append(root) or real(root))
    free = machine.free()
    for _ in range(100):
        free()
        machine.pass_time(INTERVAL / 10)
    assert len(taken) in (10, 11)


def test_another_quota_begins_anew(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    free = machine.free()
    free()
    machine.pass_time(1)
    assert free() == pytest.approx(2, abs=0.1)
    write(tmp_path, {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "150000 100000"})
    machine.pass_time(1)
    assert free() == 1
    machine.pass_time(1)
    assert free() == pytest.approx(1.5, abs=0.1)


def test_without_system_files_all_processors_are_free(tmp_path: Path) -> None:
    now = [0.0]
    free = FreeProcessors(tmp_path, lambda: now[0], lambda: 0.0)
    free()
    now[0] += 1
    assert free() == 2
