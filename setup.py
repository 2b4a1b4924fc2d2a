"""The build is described in pyproject.toml; this answers those who run setup.py."""

raise SystemExit("Install with `pip install .`, build with `python -m build`.")
