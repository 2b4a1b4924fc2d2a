"""Downloads weights into the cache folder. No other code fetches anything."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pooch
import requests

from ..util.files import atomic_directory, present_directory
from .catalogue import NAME, PUBLISHED, addresses, cache_folder
from .convert.published import HDF5
from .convert.source import read_source
from .find import path_of_name
from .layout import Card

ARCHIVES = ".downloads"  # in the cache folder, the folder of files that are not converted yet


def download(
    sources: Sequence[str],
    name: str | None = None,
    checksums: Sequence[str] = (),
    force: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Download weights into the cache folder and convert them, unless they are there.

    A complete file is kept until it is converted. The card notes the checksums of the first
    download, and a later download must have the same.

    Args:
        sources: a name in `PUBLISHED`, one address or two.
        name: a name for the weights; None for the name of the source.
        checksums: a SHA-256 for each address, instead of those that the card has; may be empty.
        force: fetch again and replace what is there.
        quiet: show no progress.

    Returns:
        ``name``, ``path`` and ``files``: the ``name``, ``url`` and ``sha256`` of each downloaded
        file, an empty list if the weights were there.

    Raises:
        ValueError: an argument is wrong, a file cannot be fetched or has another checksum, or it
            is no biLM.
        OSError: a file cannot be written.
    """
    name, urls = _resolve(sources, name)
    if checksums and len(checksums) != len(urls):
        raise ValueError(f"There are {len(urls)} files and {len(checksums)} checksums (--sha256).")
    folder = cache_folder() / name
    there = present_directory(folder)  # only --force replaces it, whatever it has
    if not NAME.fullmatch(name) or (not there.exists() and path_of_name(name)):
        raise ValueError(
            f"The weights cannot be stored under the name {name!r}. Give one with --name that has "
            f"letters, digits, '.', '_' and '-' (first a letter or digit), and is not in use."
        )
    noted = Card.read(there).meta.get("downloaded", {})  # checksums by address
    given = map(str.lower, checksums) if checksums else map(noted.get, urls)
    wanted = dict(zip(urls, given, strict=True))
    if there.exists() and not force:
        if noted != wanted:
            origin = ", ".join(f"{url} with SHA-256 {each}" for url, each in noted.items())
            raise ValueError(
                f"The weights '{name}' are there already, from {origin or 'elsewhere'}. Give "
                f"others another --name, or replace them with --force."
            )
        return {"name": name, "path": str(there), "files": []}
    paths = [_fetch(*each, force, quiet) for each in wanted.items()]
    noted = dict(zip(urls, map(pooch.file_hash, paths), strict=True))
    files = [{"name": _file_name(url), "url": url, "sha256": each} for url, each in noted.items()]
    try:
        source = read_source(paths)
    except ValueError as error:
        raise ValueError(f"{error} With --force, the download begins anew.") from error
    if source.lacks_warm_state():
        source.compute_warm_state()
    published = PUBLISHED.get(sources[0])
    about = {"lang": published["lang"], "description": published["text"]} if published else {}
    defaults = {"name": name, "sources": files, **about}
    source.card.meta = defaults | source.card.meta | {"downloaded": noted}
    with atomic_directory(folder) as new:
        source.save(new)
    for path in paths:
        path.unlink(missing_ok=True)  # another process may have downloaded the same
    return {"name": name, "path": str(folder), "files": files}


def _resolve(sources: Sequence[str], name: str | None) -> tuple[str, Sequence[str]]:
    """The name of weights, and their addresses."""
    if len(sources) == 1 and sources[0] in PUBLISHED:
        if not (urls := addresses(sources[0])):
            raise ValueError(
                f"There is no release yet to download '{sources[0]}' from. In a clone of "
                f"spacy-elmo, give its directory, project/weights/{sources[0]}, as weights."
            )
        return name or sources[0], urls
    weights = [file for file in map(Path, map(_file_name, sources)) if file.suffix != ".json"]
    are_urls = all(source.lower().startswith(("http://", "https://")) for source in sources)
    if not are_urls or [1 + (file.suffix in HDF5) for file in weights] != [len(sources)]:
        raise ValueError(
            f"Give one name, of {list(PUBLISHED)}; or the address (http:// or https://) of a zip; "
            f"or two addresses, one ending in .json and one in .hdf5. Found {sources}."
        )
    return name or weights[0].stem.removesuffix("_weights"), sources


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path).rpartition("/")[2]


def _fetch(url: str, checksum: str | None, force: bool, quiet: bool) -> Path:
    """Download a file, whole or not at all, unless it is there and has its checksum.

    Raises:
        ValueError: the file cannot be reached, does not exist, or has another checksum.
        OSError: the file cannot be written.
    """
    pooch.get_logger().setLevel("WARNING")
    downloader = pooch.HTTPDownloader(progressbar=not quiet and sys.stderr.isatty())
    folder, name = cache_folder() / ARCHIVES, pooch.utils.unique_file_name(url)
    if force:
        (folder / name).unlink(missing_ok=True)
    try:
        return Path(pooch.retrieve(url, checksum, name, folder, downloader=downloader))
    except (requests.RequestException, ValueError) as error:
        # Errors of connections are long and no help; those of a 404 or a checksum are.
        is_connection = isinstance(error, OSError) and not isinstance(error, requests.HTTPError)
        reason = f"no connection, or it broke off ({type(error).__name__})"
        raise ValueError(
            f"Cannot download {url}: {reason if is_connection else error}. Check the address, the "
            f"network and --sha256, or fetch it by other means for `elmo convert`."
        ) from error
