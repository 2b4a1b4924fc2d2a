"""What people check before they depend on a library."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import srsly

from .helpers import ROOT, TARGETS

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def test_each_promise_has_its_attack() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    table = page[page.index("| promise | attack |") :].partition("\n\n")[0]
    for row in table.splitlines()[2:]:
        attacks = re.findall(r"\[`(test_\w+)`\]\(([^)]+)\)", row)
        assert attacks, row
        for name, path in attacks:
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_do_little(path: Path) -> None:
    """Actions are pinned by commit, and each job has the permissions that it names, no others."""
    text = path.read_text(encoding="utf-8")
    workflow: dict[str, Any] = srsly.yaml_loads(text)
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        assert "permissions" in job and "timeout-minutes" in job, name
    used = re.findall(r"uses: (.*)", text)
    assert used and all(PINNED.fullmatch(action) for action in used)


def test_python_versions() -> None:
    """The hosted checks run each version that the metadata name."""
    metadata = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = re.findall(r"Python :: (3\.\d+)", metadata)
    ci = srsly.read_yaml(ROOT / ".github" / "workflows" / "ci.yml")
    assert ci["jobs"]["test"]["strategy"]["matrix"]["python"] == named


def test_each_wheel_is_tested_on_its_own_system() -> None:
    """A release is what `make wheels` makes, the wheels of each system and the pure one."""
    jobs = srsly.read_yaml(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert "make wheels" in [step.get("run") for step in jobs["build"]["steps"]]
    systems = jobs["test"]["strategy"]["matrix"]["system"]
    assert len(systems) == len(TARGETS) + 1
    for target in (*TARGETS, "any"):
        assert [fnmatch(target, system["wheel"]) for system in systems].count(True) == 1, target


def test_the_tools_of_a_release() -> None:
    """`make wheels` installs those of the extra alone, in versions that are pinned."""
    makefile, metadata, pinned = (
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("Makefile", "pyproject.toml", "constraints.txt")
    )
    extra = metadata.partition("\nrelease = [")[2].partition("]")[0]
    named = re.findall(r'"([\w-]+)[>=]=', extra)
    assert named and f"$(PIP_INSTALL) {' '.join(named)}\n" in makefile
    assert all(f"\n{name}==" in pinned for name in named)
