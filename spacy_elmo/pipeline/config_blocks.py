"""Blocks of a config, and the variables in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

Block = dict[str, Any]
Path = tuple[str, ...]  # of a block or setting, from the config's root

VARIABLE = re.compile(r"\$\{([^}]+)\}")


def find_blocks(block: Block, path: Path = ()) -> Iterator[tuple[Path, Block]]:
    """A block and all blocks in it, with their paths."""
    yield path, block
    for name, value in block.items():
        if isinstance(value, dict):
            yield from find_blocks(value, (*path, name))


def get_block(config: Block, path: Path) -> Block:
    for name in path:
        config = config[name]
    return config


def replace_variables(new: Block, old: Block, gone: set[str], path: Path = ()) -> None:
    """Replace variables that name what will be gone, and those that stand for whole blocks, by
    their values: but not in what will be gone."""
    for name, value in new.items():
        here = (*path, name)
        if ".".join(here) in gone:
            continue
        if isinstance(value, dict):
            replace_variables(value, old[name], gone, here)
        elif isinstance(value, str):
            targets = [target.replace(":", ".") for target in VARIABLE.findall(value)]
            named = any(f"{target}.".startswith(f"{each}.") for target in targets for each in gone)
            if named or isinstance(old[name], dict):
                new[name] = deepcopy(old[name])


def rename_variables(block: Any, before: str, after: str) -> Any:
    """A copy of a block that was moved from one path to another, with the variables in it."""
    if isinstance(block, dict):
        return {name: rename_variables(value, before, after) for name, value in block.items()}
    if isinstance(block, str):
        return block.replace(f"${{{before}.", f"${{{after}.")
    return deepcopy(block)
