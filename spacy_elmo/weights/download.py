"""Downloads weights into the folder of `catalogue`: the only code that fetches anything."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pooch
import requests

from ..util.files import atomic_directory
from .catalogue import NAME, cache_folder, find_downloaded, has_no_address, published
from .convert.published import HDF5
from .convert.source import read_source
from .find import known_names
from .layout import Card

ARCHIVES = ".downloads"  # the folder of files that are not converted yet, in the cache folder


def download(
    sources: Sequence[str],
    name: str | None = None,
    checksums: Sequence[str] = (),
    force: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Download weights into the cache folder, in our format, unless they are there.

    A file that is whole is not fetched again until it is converted.

    Args:
        sources: a name of `published`, one address or two.
        name: for weights from an address.
        checksums: the SHA-256 for each address, or none.
        force: fetch again and replace what is there.
        quiet: no progress on the standard error stream.

    Returns:
        ``name``, ``path``, and ``files``: ``url`` and ``sha256`` of each that they come from.

    Raises:
        ValueError: an argument is wrong, a file cannot be fetched, or it is no biLM.
        OSError: a file cannot be written.
    """
    name, urls = _resolve(sources, name)
    if checksums and len(checksums) != len(urls):
        raise ValueError(f"There are {len(urls)} files and {len(checksums)} checksums (--sha256).")
    there = find_downloaded(name)
    if there is None and name in known_names():
        raise ValueError(f"There are other weights of the name '{name}'. Give another with --name.")
    if there is not None and not force:
        _check_origin(there, urls, checksums)
        return {"name": name, "path": str(there), "files": []}
    hashes = [None] * len(urls) if not checksums else [each.lower() for each in checksums]
    paths = [_fetch(*pair, force, quiet) for pair in zip(urls, hashes, strict=True)]
    files = [{"url": u, "sha256": pooch.file_hash(p)} for u, p in zip(urls, paths, strict=True)]
    folder = cache_folder() / name
    try:
        source = read_source(paths)
    except ValueError as error:
        raise ValueError(f"{error} With --force, the download begins anew.") from error
    if source.model.config.initial_state == "warm":
        source.model.warm_state()
    source.card.meta = _card(name) | source.card.meta | {"downloaded": files}
    named = [{"name": _file_name(file["url"]), **file} for file in files]
    source.card.meta.setdefault("sources", named)
    with atomic_directory(folder) as new:
        source.save(new)
    for path in paths:
        path.unlink(missing_ok=True)  # another process may have downloaded the same
    return {"name": name, "path": str(folder), "files": files}


def _resolve(sources: Sequence[str], name: str | None) -> tuple[str, list[str]]:
    """The name of the weights, and their addresses."""
    known = published()
    if len(sources) == 1 and sources[0] in known:
        if name is not None:
            raise ValueError("--name is for weights from an address; these have one.")
        return sources[0], list(known[sources[0]].urls)
    if len(sources) == 1 and (advice := has_no_address(sources[0])):
        raise ValueError(advice)
    are_urls = all(re.match("https?://", source, re.IGNORECASE) for source in sources)
    files = [Path(_file_name(url)) for url in sources]
    weights = [file for file in files if file.suffix != ".json"]
    is_pair = len(files) == 2 and len(weights) == 1 and weights[0].suffix in HDF5
    is_zip = len(files) == 1 and len(weights) == 1 and weights[0].suffix not in HDF5
    if not are_urls or not (is_zip or is_pair):
        raise ValueError(
            f"Give one name, of {list(known)}; or the address (http:// or https://) of a zip; "
            f"or two addresses, one ending in .json and one in .hdf5. Found {sources}."
        )
    name = name or weights[0].stem.removesuffix("_weights")
    if not NAME.fullmatch(name):
        raise ValueError(
            f"The weights cannot be stored under the name {name!r}. Give one of letters, digits, "
            f"'.', '_' and '-' with --name."
        )
    return name, list(sources)


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path).rpartition("/")[2]


def _fetch(url: str, checksum: str | None, force: bool, quiet: bool) -> Path:
    """Download a file, whole or not at all, unless it is there and has its checksum.

    Raises:
        ValueError: it cannot be reached, is not there, or is another one.
        OSError: it cannot be written.
    """
    pooch.get_logger().setLevel("WARNING")
    downloader = pooch.HTTPDownloader(progressbar=not quiet and sys.stderr.isatty())
    folder, name = cache_folder() / ARCHIVES, pooch.utils.unique_file_name(url)
    if force:
        (folder / name).unlink(missing_ok=True)
    try:
        return Path(pooch.retrieve(url, checksum, name, folder, downloader=downloader))
    except requests.HTTPError as error:  # such as 404
        raise ValueError(f"Cannot download {url}: {error}") from error
    except requests.RequestException as error:
        raise ValueError(
            f"{url} cannot be reached, or the connection broke off ({type(error).__name__}). Check "
            f"the address and the network, or fetch it by other means for `elmo convert`."
        ) from error
    except ValueError as error:  # another checksum
        raise ValueError(f"{url}: {error}") from error


def _check_origin(folder: Path, urls: Sequence[str], checksums: Sequence[str]) -> None:
    """Raise a ValueError if weights come from other addresses, or are other files."""
    there = Card.read(folder).meta.get("downloaded", [])
    hashes = [file["sha256"] for file in there]
    wanted = [each.lower() for each in checksums] or hashes
    if [file["url"] for file in there] != list(urls) or hashes != wanted:
        origin = ", ".join(f"{file['url']} with SHA-256 {file['sha256']}" for file in there)
        raise ValueError(
            f"The weights '{folder.name}' are there already, from {origin or 'elsewhere'}. Give "
            f"others another --name, or replace them with --force."
        )


def _card(name: str) -> dict[str, Any]:
    """What is known of published weights."""
    known = published().get(name)
    about = {} if known is None else {"lang": known.lang, "description": known.text}
    return {"name": name, **about}
