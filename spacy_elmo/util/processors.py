"""The processors that this process may use, and how many of them others leave free.

A process may be bound to some processors (its affinity), and its control group, as a container's,
may have a quota of their time. Both may be in use by others. Load is read on Linux alone;
elsewhere all processors count as free.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf
from pathlib import Path, PurePosixPath
from typing import NamedTuple

INTERVAL = 0.25  # seconds between samples at least: the system counts hundredths
MAX_AGE = 5.0  # of a sample; the mean load over a longer time says little about now


class Limit(NamedTuple):
    """Processor time that a group of processes shares.

    Attributes:
        capacity: processors.
        used: seconds that all its processes have used since some moment; 0 if unknown.
    """

    capacity: float
    used: float


class Sample(NamedTuple):
    """Processor time used so far.

    Attributes:
        time: when, in seconds.
        own: seconds that this process has used.
        limits: of it.
    """

    time: float
    own: float
    limits: list[Limit]

    def has_other_limits(self, other: Sample) -> bool:
        """Tell whether the affinity or a quota has changed between two samples."""
        return [x.capacity for x in self.limits] != [x.capacity for x in other.limits]


def limits(root: Path = Path("/")) -> Iterator[Limit]:
    """The limits of this process: its affinity, and the quotas of its control groups.

    Args:
        root: where ``proc`` and ``sys`` are.
    """
    if hasattr(os, "sched_getaffinity"):
        own = os.sched_getaffinity(0)
    else:
        own = set(range(os.cpu_count() or 1))
    yield Limit(len(own), _seconds_used(root / "proc/stat", own))
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        version_2 = not controllers
        if not version_2 and "cpu" not in controllers.split(","):
            continue
        base = root / "sys/fs/cgroup" / ("" if version_2 else "cpu")
        # In a container its own group is often mounted as the root, whatever the path says.
        for group in (PurePosixPath(path), *PurePosixPath(path).parents):
            with suppress(ValueError):  # no quota, or a file that is not there
                yield (_limit_2 if version_2 else _limit_1)(base / group.relative_to("/"))


def usable_processors(root: Path = Path("/")) -> float:
    """Processors that this process may use, whoever else uses them; a quota may be a part."""
    return min(limit.capacity for limit in limits(root))


def free_between(before: Sample, after: Sample) -> float:
    """The mean number of processors that others left free between two samples.

    What this process used itself is free for it.
    """
    seconds, own = after.time - before.time, after.own - before.own
    return min(
        new.capacity - max(0.0, new.used - old.used - own) / seconds
        for old, new in zip(before.limits, after.limits, strict=True)
    )


class FreeProcessors:
    """Tells how many processors are free; measured again after `INTERVAL`, over the time since.

    Args:
        root: see `limits`.
        clock, own_seconds: the time, and what this process has used, in seconds.
    """

    def __init__(
        self,
        root: Path = Path("/"),
        clock: Callable[[], float] = time.monotonic,
        own_seconds: Callable[[], float] = time.process_time,
    ):
        self.root, self.clock, self.own_seconds = root, clock, own_seconds
        self._last: Sample | None = None
        self._measured: deque[float] = deque(maxlen=2)

    def __call__(self) -> float:
        """The fewer of the last two measurements, so that a pause of others is not taken for their
        end; 1 before the first, and where nobody has asked for longer than `MAX_AGE`."""
        last = self._last
        if last is None or self.clock() - last.time >= INTERVAL:
            new = Sample(self.clock(), self.own_seconds(), list(limits(self.root)))
            self._last = new
            if last is None or new.time - last.time > MAX_AGE or last.has_other_limits(new):
                self._measured.clear()
            else:
                self._measured.append(free_between(last, new))
        return min(self._measured, default=1.0)


def _seconds_used(stat: Path, processors: set[int]) -> float:
    """Seconds that some processors have not been idle, by ``/proc/stat``."""
    names = {f"cpu{number}" for number in processors}
    used = 0
    for line in _read(stat).splitlines():
        name, *ticks = line.split()
        if name in names:  # user nice system idle iowait irq softirq steal (guests are users)
            used += sum(int(n) for i, n in enumerate(ticks[:8]) if i not in (3, 4))
    return used / os.sysconf("SC_CLK_TCK") if used else 0.0


def _limit_2(group: Path) -> Limit:
    """Of a control group of version 2: ``cpu.max`` is a quota, or "max", and a period."""
    quota, period = _read(group / "cpu.max").split()
    statistics = dict(line.split() for line in _read(group / "cpu.stat").splitlines())
    return Limit(int(quota) / int(period), int(statistics.get("usage_usec", 0)) / 1e6)


def _limit_1(group: Path) -> Limit:
    """Of a control group of version 1, whose quota is -1 if there is none."""
    quota = int(_read(group / "cpu.cfs_quota_us"))
    used = _read(group / "cpuacct.usage") or 0
    period = int(_read(group / "cpu.cfs_period_us"))
    return Limit(quota / period if quota > 0 else inf, int(used) / 1e9)


def _read(path: Path) -> str:
    """A system file; empty where it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""
