"""Builds the library in spacy_elmo/bilm/kernel: ``python setup.py`` does it in place.

Hatchling runs this as a build hook: it compiles for this system with `cc`, or else with an
installed `ziglang`. Where neither is there, the package goes without the library, and says so when
it reads.
The environment variable SPACY_ELMO_TARGET names another system, of `TARGETS`, to compile for by
`ziglang`, or "any" for a wheel without the library.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from runpy import run_path
from shutil import which
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # when it is built in place
    BuildHookInterface = object

KERNEL = Path("spacy_elmo/bilm/kernel")
# A wheel's platform: zig's name for it, and what the file's name ends in.
TARGETS = {
    "manylinux_2_17_x86_64.manylinux2014_x86_64": ("x86_64-linux-gnu.2.17", ".so"),
    "manylinux_2_17_aarch64.manylinux2014_aarch64": ("aarch64-linux-gnu.2.17", ".so"),
    "macosx_11_0_arm64": ("aarch64-macos.11.0", ".dylib"),
    "win_amd64": ("x86_64-windows-gnu", ".dll"),
}
# Without contraction, products are rounded as the source says, whoever compiles it.
FLAGS = [
    "-std=c11",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fvisibility=hidden",
    "-fPIC",
    "-shared",
    "-s",
]
# Not this CPU's: the source chooses instructions when it runs.
BASELINE = {"x86_64": ["-march=x86-64"], "aarch64": ["-march=armv8-a"]}


def compile_library(path: Path, target: str = "") -> None:
    """Compile the library into a file, for this system or for one of `TARGETS`.

    Raises:
        RuntimeError: no compiler is there, or none of those that are there compiles it.
    """
    zigs, errors = [[sys.executable, "-m", "ziglang", "cc"], ["python-zig", "cc"]], []
    if target:
        flags, commands = ["-target", TARGETS[target][0]], []
    else:
        flags = BASELINE.get(platform.machine(), []) if sys.platform == "linux" else []
        compilers = os.environ.get("CC", ""), "cc", "gcc", "clang"
        commands = [[*shlex.split(name), *flags] for name in compilers if which(name.split(" ")[0])]
        flags = []
    commands += [[*zig, *flags, "-mcpu=baseline"] for zig in zigs]
    if "linux" in (target or sys.platform):  # else a symbol may be missing until it is loaded
        commands = [[*command, "-Wl,-z,defs"] for command in commands]
    hashed = run_path(str(KERNEL / "source.py"))["source_hash"]()
    source = str((KERNEL / "kernel.c").absolute())
    # A library for macOS contains its own path: a relative one is the same wherever it is built.
    given = [*FLAGS, f'-DSOURCE="{hashed}"', source, "-o", path.name]
    # pip hides by this variable what is installed, ziglang too.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for command in commands:
        try:
            subprocess.run(
                [*command, *given], cwd=path.parent, env=variables, check=True, capture_output=True
            )
            return
        except (OSError, subprocess.CalledProcessError) as error:
            lines = (getattr(error, "stderr", b"") or str(error).encode()).decode(errors="replace")
            errors.append(f"{command[0]}: {lines.strip()[-200:]}")
    raise RuntimeError(f"No compiler has made the library ({'; '.join(errors)}).")


class KernelHook(BuildHookInterface):  # type: ignore[misc]
    """Puts the library into a wheel, or in place for an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        os.chdir(self.root)
        target = os.environ.get("SPACY_ELMO_TARGET", "")
        if target not in ("", "any", *TARGETS):
            raise ValueError(
                f"SPACY_ELMO_TARGET is '{target}': choose one of {[*TARGETS, 'any']}, or none."
            )
        if target == "any" or self.target_name != "wheel":
            return
        if version == "editable":
            build_in_place()
            return
        suffix = (
            TARGETS[target][1] if target else run_path(str(KERNEL / "source.py"))["LIBRARY"].suffix
        )
        self.folder = tempfile.TemporaryDirectory()
        library = Path(self.folder.name, f"kernel{suffix}")
        try:
            compile_library(library, target)
        except RuntimeError as error:
            if target:
                raise
            self.app.display_warning(str(error))
            return
        here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{target or here}"
        build_data["force_include"][str(library)] = str(KERNEL / library.name)


def build_in_place() -> None:
    """Compile the library where it is imported from, or say why that cannot be done."""
    path: Path = run_path(str(KERNEL / "source.py"))["LIBRARY"]
    new = path.with_suffix(f".new{path.suffix}")
    try:
        compile_library(new)
        new.replace(path)  # a process may have the old one loaded
    except RuntimeError as error:
        path.unlink(missing_ok=True)
        print(error, file=sys.stderr)
    finally:
        new.unlink(missing_ok=True)


if __name__ == "__main__":
    os.chdir(Path(__file__).parent)
    build_in_place()
