"""The kernel computes the same, whoever compiles it and for whichever processor.

kernel_check.c includes the kernel's source, and prints hashes of what it computes of fixed numbers,
in a line for each instruction set. Where the kernel is to compute something else, so are these.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).parents[2]
CHECK = Path(__file__).with_name("kernel_check.c")
KERNEL = ROOT / "spacy_elmo" / "bilm" / "kernel"
FLAGS = ["-std=c11", "-ffp-contract=off"]
EXPECTED = (
    "48e6941e04eac18e f28906218a4d1501 e59a7dcf392edb50 400f03e6ece8560d 9a98a2a3590ad324 "
    "14ff20139ba57ab6 47ef8f9a18abcab7 72ba36cfa92994b9"
)
ZIG = [sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
needs_cc = pytest.mark.skipif(
    shutil.which("cc") is None or sys.platform == "win32", reason="there is no compiler `cc`"
)
needs_zig = pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed")


def sets_that_agree(command: list[str], out: Path, runner: tuple[str, ...] = ()) -> list[str]:
    """The instruction sets of the compiled program, which print what is expected."""
    program = out / "kernel_check.exe"
    subprocess.run([*command, *FLAGS, str(CHECK), "-o", str(program)], check=True)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    printed = subprocess.check_output([*runner, str(program)], text=True, env=environment)
    lines = dict(line.split(" ", maxsplit=1) for line in printed.splitlines())
    assert lines == dict.fromkeys(lines, EXPECTED)
    return list(lines)


@needs_cc
def test_compiled_by_cc(tmp_path: Path) -> None:
    assert sets_that_agree(["cc", "-O2"], tmp_path)


@pytest.mark.slow
@needs_zig
def test_compiled_by_zig(tmp_path: Path) -> None:
    """As wheels are."""
    assert sets_that_agree([*ZIG, "-O3"], tmp_path)


@pytest.mark.slow
@needs_zig
@pytest.mark.skipif(shutil.which("qemu-aarch64") is None, reason="there is no qemu-aarch64")
def test_on_another_processor(tmp_path: Path) -> None:
    zig = [*ZIG, "-target", "aarch64-linux-musl", "-O3"]
    assert sets_that_agree(zig, tmp_path, ("qemu-aarch64",)) == ["neondot", "neon"]


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A command that compiles with sanitizers; without optimization, which hides faults."""
    room = tmp_path_factory.mktemp("sanitizers")
    (room / "empty.c").write_text("int main(void) { return 0; }\n")
    command = ["cc", *SANITIZERS, "-O0"]
    made = subprocess.run([*command, "empty.c"], cwd=room, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"the compiler has no sanitizers: {made.stderr.strip()[-200:]}")
    return command


@pytest.mark.slow
@needs_cc
def test_sanitizers_find_nothing(sanitized: list[str], tmp_path: Path) -> None:
    assert sets_that_agree(sanitized, tmp_path)


@pytest.mark.slow
@needs_cc
@pytest.mark.skipif(sys.platform != "linux", reason="preloads the sanitizers")
def test_sanitizers_find_nothing_in_random_shapes(sanitized: list[str], tmp_path: Path) -> None:
    """A package with such a library reads biLMs of any sizes, and refuses broken tensors."""
    package, source = tmp_path / "spacy_elmo", run_path(str(KERNEL / "source.py"))
    shutil.copytree(ROOT / "spacy_elmo", package, ignore=shutil.ignore_patterns("__pycache__"))
    defined, library = f'-DSOURCE="{source["source_hash"]()}"', source["LIBRARY"]
    given = [*FLAGS, "-shared", "-fPIC", defined, str(KERNEL / "kernel.c"), "-o"]
    built = package / library.relative_to(ROOT / "spacy_elmo")
    built.unlink(missing_ok=True)
    subprocess.run([*sanitized, *given, str(built)], check=True)
    libraries = (
        subprocess.check_output(["cc", f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libstdc++.so")
    )
    environment = {
        **os.environ, "PYTHONPATH": str(tmp_path), "LD_PRELOAD": ":".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",
    }  # fmt: skip
    code = "import shapes; print({shapes.attack(seed) for seed in range(40)})"
    folder = ROOT / "benchmarks" / "reliability"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); {code}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("{'equal', 'refused'}", "{'refused', 'equal'}"), done.stdout
