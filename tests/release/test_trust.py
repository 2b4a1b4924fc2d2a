"""What people check before they depend on a library."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import srsly

ROOT = Path(__file__).parents[2]
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
