"""Published weights that have a name, and the user's folder of downloaded ones."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ..util.files import present_directory
from .layout import WEIGHTS

CACHE_VARIABLE = "SPACY_ELMO_CACHE"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # one folder, visible, inside the cache folder
ALLENNLP = "https://s3-us-west-2.amazonaws.com/allennlp/models/elmo"
NLPL = "http://vectors.nlpl.eu/repository/20"


@dataclass(frozen=True)
class Published:
    """Weights that have a name.

    Attributes:
        urls: of an ``options.json`` and an HDF5 file, or of a zip.
        lang: their language, as spaCy's code.
        text: what they were trained on.
        megabytes: size of the download, as far as it is known.
    """

    urls: tuple[str, ...]
    lang: str
    text: str
    megabytes: int | None = None


def _allennlp(shape: str, text: str, megabytes: int) -> Published:
    start = f"{ALLENNLP}/{shape}/elmo_{shape}"
    return Published((f"{start}_options.json", f"{start}_weights.hdf5"), "en", text, megabytes)


def _nlpl(number: int, lang: str, text: str) -> Published:
    return Published((f"{NLPL}/{number}.zip",), lang, text)


NEWS = "1 Billion Word Benchmark (news)"
PUBLISHED = {
    "elmo_small": _allennlp("2x1024_128_2048cnn_1xhighway", NEWS, 54),
    "elmo_medium": _allennlp("2x2048_256_2048cnn_1xhighway", NEWS, 112),
    "elmo_original": _allennlp("2x4096_512_2048cnn_2xhighway", NEWS, 374),
    "elmo_original_5.5b": _allennlp(
        "2x4096_512_2048cnn_2xhighway_5.5B", "Wikipedia and news, 5.5 billion tokens", 374
    ),
    "nlpl_195": _nlpl(195, "ru", "Russian National Corpus and Wikipedia"),
    "nlpl_199": _nlpl(199, "ru", "Taiga corpus, lemmas"),
    "nlpl_201": _nlpl(201, "de", "German"),
    "nlpl_202": _nlpl(202, "sv", "Swedish"),
    "nlpl_203": _nlpl(203, "la", "Latin"),
    "nlpl_209": _nlpl(209, "en", "English"),
    "nlpl_210": _nlpl(210, "nb", "Wikipedia of 2020, lemmas"),
    "nlpl_211": _nlpl(211, "nb", "Wikipedia of 2020"),
    "nlpl_217": _nlpl(217, "nb", "NorELMo30: Wikipedia and Norsk Aviskorpus"),
    "nlpl_218": _nlpl(218, "nb", "NorELMo100: Wikipedia and Norsk Aviskorpus"),
}


def cache_folder() -> Path:
    """The folder of downloaded weights: `CACHE_VARIABLE`, or where the system has such folders."""
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE]).expanduser()
    import pooch

    return Path(pooch.os_cache("spacy-elmo"))


def find_downloaded(name: str) -> Path | None:
    """The directory of downloaded weights, or None if there are none of this name."""
    if not NAME.fullmatch(name):
        return None
    path = present_directory(cache_folder() / name)
    return path if path.is_dir() else None


def downloaded_names() -> list[str]:
    """The names of all downloaded weights; other folders may lie beside them."""
    found = {file.parent.name for file in cache_folder().glob(f"*/{WEIGHTS}")}
    return sorted(filter(NAME.fullmatch, found))


def download_hint(name: str) -> str | None:
    """Advice to download what a ``weights`` setting names; None if it is neither published nor
    an address."""
    if name in PUBLISHED:
        return (
            f"The ELMo weights '{name}' have not been downloaded. Download them once with: "
            f"python -m spacy elmo download {name}"
        )
    if name.lower().startswith(("http://", "https://")):
        return (
            f"The ELMo weights are an address, {name!r}. Download them once with `python -m spacy "
            f"elmo download`, and set 'weights' to the name that the command prints."
        )
    return None
