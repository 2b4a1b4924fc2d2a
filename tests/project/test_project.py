"""``project/project.yml``, as spaCy reads it."""

from __future__ import annotations

from pathlib import Path

from weasel.util.config import load_project_config

PROJECT = Path(__file__).parents[2] / "project"


def test_workflows_and_what_they_need() -> None:
    config = load_project_config(PROJECT)
    commands = {command["name"]: command for command in config["commands"]}
    assert set(config["workflows"]) == {"all", "learn"}
    made: set[str] = set()
    for name in [name for steps in config["workflows"].values() for name in steps]:
        for needed in commands[name]["deps"]:
            # Made by a step before, in the repository, or the user's own.
            own = needed.startswith("assets/") or needed.endswith(".spacy")
            assert needed in made or (PROJECT / needed).exists() or own, needed
        made.update(commands[name].get("outputs", []))
