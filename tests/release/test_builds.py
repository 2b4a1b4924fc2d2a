"""Wheels for each system, and what a build from source makes of the compilers that there are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

from .helpers import CODE, ROOT, TARGETS, build, contents, copy_to

KERNEL = Path("spacy_elmo", "bilm", "kernel")
STARTS = {  # of a library: its format, and where that names the processor
    "manylinux_2_17_x86_64": (b"\x7fELF", 18, b"\x3e\x00"),
    "manylinux_2_17_aarch64": (b"\x7fELF", 18, b"\xb7\x00"),
    "macosx_11_0_arm64": (b"\xcf\xfa\xed\xfe", 4, b"\x0c\x00\x00\x01"),
    "win_amd64": (b"MZ", 0, b"MZ"),
}
# Compilers are looked for on the path, and in the interpreter's environment.
WITHOUT_COMPILERS = f"import sys; sys.executable = 'nowhere'\n{CODE}"
needs_compiler = pytest.mark.skipif(
    which("cc") is None and find_spec("ziglang") is None, reason="there is no compiler"
)
READ = """
import warnings, spacy
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    assert all(nlp(text).tensor.any() for text in ("One .", "Two ."))
print(*(each.message for each in said if each.category is UserWarning), sep="\\n")
"""


def read(folder: Path) -> list[str]:
    """What the package in a folder warns of when it reads."""
    environment = {k: v for k, v in os.environ.items() if k != "SPACY_ELMO_KERNEL"}
    environment |= {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", READ]
    printed = subprocess.check_output(command, cwd=folder, env=environment, text=True)
    return list(filter(None, printed.splitlines()))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_to(tmp_path_factory.mktemp("copy") / "of the repository")


@pytest.fixture(scope="module")
def pure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("pure"))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed")
@pytest.mark.parametrize("target", TARGETS)
def test_a_wheel_for_each_system(target: str, pure: Path, copy: Path, tmp_path: Path) -> None:
    """The pure one and a library for that system; the same when it is built elsewhere."""
    wheels = [
        build("wheel", tmp_path / name, folder, SPACY_ELMO_TARGET=target, ZIG_LOCAL_CACHE_DIR=cache)
        for name, folder, cache in (
            ("one", ROOT, str(tmp_path / "cache")),
            ("other", copy, str(tmp_path / "other_cache")),
        )
    ]
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    assert wheels[0].name.endswith(f"-py3-none-{target}.whl")
    assert wheels[0].stat().st_size < 14e6
    found, common = contents(wheels[0]), contents(pure)
    [library] = set(found) - set(common)
    assert library == (KERNEL / f"kernel{TARGETS[target][1]}").as_posix()
    assert not set(common) - set(found)
    changed = {name for name in common if found[name] != common[name]}
    assert {name.partition("/")[2] for name in changed} == {"RECORD", "WHEEL"}
    start, offset, processor = STARTS[target.partition(".")[0]]
    assert found[library].startswith(start) and found[library][offset:].startswith(processor)
    assert b"/tmp" not in found[library] and str(ROOT).encode() not in found[library]


@pytest.mark.slow
def test_distributions_without_a_library_are_reproducible(
    pure: Path, copy: Path, tmp_path: Path
) -> None:
    """The same files in two folders, byte for byte."""
    assert build("wheel", tmp_path / "wheel", copy).read_bytes() == pure.read_bytes()
    one, other = (
        build("sdist", tmp_path / name, folder) for name, folder in (("1", ROOT), ("2", copy))
    )
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.slow
def test_no_compiler(pure: Path, copy: Path, tmp_path: Path) -> None:
    """The wheel is the pure one, which says once that it is slow, and what to do."""
    made = build(
        "wheel", tmp_path / "dist", copy, WITHOUT_COMPILERS, SPACY_ELMO_TARGET="", PATH="", CC=""
    )
    assert made.name == pure.name and made.read_bytes() == pure.read_bytes()
    for name, data in contents(made).items():
        path = tmp_path / "installed" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    [said] = read(tmp_path / "installed")
    assert re.search(
        "no library .* several times slower.* Install a wheel .* or a C compiler", said
    )


@pytest.mark.slow
@needs_compiler
def test_in_place(tmp_path: Path) -> None:
    """The library is not in wheels, and is not used once its source has changed."""
    copy = copy_to(tmp_path / "copy")

    def make() -> None:
        subprocess.run([sys.executable, "setup.py"], cwd=copy, check=True)

    make()
    assert read(copy) == []
    [library] = copy.glob(f"{KERNEL}/kernel.[sd]*")
    assert not any(library.name in name for name in contents(build("wheel", tmp_path / "1", copy)))
    source = copy / KERNEL / "kernel.c"
    source.write_text(source.read_text("utf-8") + "/* newer */\n", "utf-8")
    [said] = read(copy)
    assert "was built from another source" in said and "several times slower" in said
    make()
    assert read(copy) == []


@pytest.mark.slow
@needs_compiler
def test_an_editable_installation(tmp_path: Path) -> None:
    """It builds the library in place."""
    pytest.importorskip("editables")
    copy = copy_to(tmp_path / "copy")
    editable = build("editable", tmp_path / "dist", copy, SPACY_ELMO_TARGET="")
    assert editable.name.endswith("-py3-none-any.whl")
    assert not any("kernel" in name for name in contents(editable))
    assert len([*copy.glob(f"{KERNEL}/kernel.[sd]*")]) == 1


def test_a_system_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        build("wheel", tmp_path, SPACY_ELMO_TARGET="amiga")
    assert "SPACY_ELMO_TARGET is 'amiga': choose one of ['manylinux" in raised.value.stderr
