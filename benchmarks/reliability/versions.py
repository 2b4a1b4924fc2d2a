"""Tests with the lowest and the newest versions of everything that setup.py allows.

The lowest run on the lowest Python, the newest on the newest; `--python` names another one.

    python benchmarks/reliability/versions.py  # both; needs uv (pip install uv)
    python benchmarks/reliability/versions.py --only newest --python 3.14 --all-tests

Makes an environment for each in a folder that stays (`--folder`), prints the versions, and
runs a selection of the tests there. On Linux, PyPI's PyTorch brings 5 GB of CUDA libraries; with
`--index https://download.pytorch.org/whl/cpu` it comes without.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# name: the interpreter, and which versions uv chooses
ENVIRONMENTS = {"lowest": ("3.10", "lowest-direct"), "newest": ("3.13", "highest")}
SHOWN = ("spacy", "thinc", "torch", "numpy", "safetensors", "srsly", "h5py", "pyarrow")
TESTS = (
    "bilm/test_config.py", "bilm/test_model.py", "weights/test_native.py",
    "weights/test_published.py", "util/test_threads.py", "cli/test_convert.py",
    "encoding/test_formats.py", "lm/test_softmax.py", "pipeline/test_component.py",
    "pipeline/test_listener.py", "pipeline/test_serialization.py",
    "pretraining/test_checkpoint.py",
    "pretraining/test_train_step.py",
)  # fmt: skip


def make_environment(folder: Path, python: str, resolution: str, indexes: list[str]) -> Path:
    """An environment with this package and its extra `test`; its interpreter."""
    uv = [sys.executable, "-m", "uv"]
    interpreter = folder / "bin" / "python"
    if not interpreter.exists():
        subprocess.run([*uv, "venv", "--quiet", "--python", python, folder], check=True)
    install = [*uv, "pip", "install", "--quiet", "--python", interpreter]
    install += ["--resolution", resolution, "--editable", f"{ROOT}[test]"]
    for index in indexes:
        install += ["--index", index]
    subprocess.run(install, check=True)
    return interpreter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=sorted(ENVIRONMENTS))
    parser.add_argument("--python", help="another interpreter")
    parser.add_argument("--folder", type=Path, default=Path("versions"))
    parser.add_argument("--index", action="append", default=[], help="a package index to prefer")
    parser.add_argument("--all-tests", action="store_true", help="not a selection alone")
    args = parser.parse_args()
    failed = []
    for name in [args.only] if args.only else ENVIRONMENTS:
        python, resolution = ENVIRONMENTS[name]
        folder = args.folder.resolve() / name
        python = make_environment(folder, args.python or python, resolution, args.index)
        code = f"from importlib.metadata import version\nfor n in {SHOWN}: print(n, version(n))"
        subprocess.run([python, "--version"], check=True)
        subprocess.run([python, "-c", code], check=True)
        tests = [] if args.all_tests else [f"tests/{test}" for test in TESTS]
        done = subprocess.run([python, "-m", "pytest", "-q", "-m", "not slow", *tests], cwd=ROOT)
        failed += [name] * bool(done.returncode)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
