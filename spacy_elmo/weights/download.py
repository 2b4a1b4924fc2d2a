"""Downloads weights into the folder of `catalogue`: the only code that fetches anything."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pooch
import requests

from ..about import __version__
from ..util.files import atomic_directory, read_json, reading, write_json
from .catalogue import NAME, cache_folder, has_no_address, published
from .find import EMBEDDED, GROUP, find_weights
from .layout import CONFIG, FILES, HDF5, META, MODEL, OPTIONS
from .published.hdf5 import import_h5py
from .zips import open_zip, unpack

LISTS = (".txt", ".txt.xz")
BROKEN_OFF = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)


def download(
    sources: Sequence[str],
    name: str | None = None,
    checksums: Sequence[str] = (),
    force: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Download weights into the cache folder, unless they are there.

    Each file is kept beside the folder of the weights until they are complete there, and is not
    fetched again before.

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
    if (EMBEDDED / name).is_dir() or name in entry_points(group=GROUP).names:
        raise ValueError(
            f"There are embedded or installed weights of the name '{name}'. Give another one with "
            f"--name."
        )
    if checksums and len(checksums) != len(urls):
        raise ValueError(f"There are {len(urls)} files and {len(checksums)} checksums (--sha256).")
    folder = cache_folder() / name
    if folder.is_dir() and not force:
        _check_origin(name, urls if sources[0] != name else [], checksums)
        return {"name": name, "path": str(folder), "files": []}
    if len(urls) == 2:
        import_h5py(name)  # before the download rather than after it
    kept = {_kept(folder, url): url for url in urls}
    for path in kept if force else ():
        path.unlink(missing_ok=True)
    _fetch(kept, checksums or [None] * len(urls), quiet)
    files = [{"url": url, "sha256": pooch.file_hash(path)} for path, url in kept.items()]
    try:
        _install(files, list(kept), folder)
    except (ValueError, OSError) as error:
        paths = " and ".join(f"'{path}'" for path in kept)
        raise ValueError(
            f"{error} The download is kept in {paths}: the same command goes on from there, with "
            f"--force it begins anew."
        ) from error
    for path in kept:
        path.unlink()
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


def _kept(folder: Path, url: str) -> Path:
    """The path of an address's file until the weights in a folder are complete."""
    digest = sha256(url.encode()).hexdigest()[:8]  # the same name may be given to other addresses
    return folder.with_name(f"{folder.name}-{digest}{Path(_file_name(url)).suffix}")


def _fetch(kept: Mapping[Path, str], checksums: Sequence[str | None], quiet: bool) -> None:
    """Download files, each whole or not at all, unless they are there and have their checksums.

    Raises:
        ValueError: one cannot be reached, is not there, or is another one.
        OSError: one cannot be written.
    """
    pooch.get_logger().setLevel("WARNING")
    show = not quiet and sys.stderr.isatty()
    downloader = pooch.HTTPDownloader(progressbar=show, chunk_size=2**16)
    for (path, url), checksum in zip(kept.items(), checksums, strict=True):
        try:
            pooch.retrieve(url, checksum, path.name, path.parent, downloader=downloader)
        except BROKEN_OFF as error:
            missing = (f"{url} as '{path}'" for path, url in kept.items() if not path.exists())
            raise ValueError(
                f"{url} cannot be reached, or the connection broke off. Check the address and the "
                f"network; or fetch by other means and save {' and '.join(missing)}, then repeat "
                f"the command."
            ) from error
        except requests.RequestException as error:  # such as 404
            raise ValueError(f"Cannot download {url}: {error}") from error
        except OSError as error:
            raise OSError(f"Cannot write '{path}': {error.strerror or error}.") from error
        except ValueError as error:  # another checksum
            raise ValueError(f"{url}: {error}") from error


def _install(files: list[dict[str, str]], kept: list[Path], folder: Path) -> None:
    """Make the weights of a folder of what was downloaded, and check them.

    Of a zip, the files of weights are unpacked, of our own layout with the lists of texts that are
    for attribution, and no others; none of its paths are used.

    Raises:
        ValueError: they are damaged, or no weights.
        OSError: a file cannot be written.
    """
    with atomic_directory(folder) as new:
        if len(kept) == 2:
            for path in kept:  # copied: the other is readable for its owner alone
                shutil.copyfile(path, new / (OPTIONS if path.suffix == ".json" else MODEL))
        else:
            zipped = open_zip(kept[0], CONFIG, OPTIONS)
            kinds = (*HDF5, *LISTS) if (zipped / CONFIG).is_file() else HDF5
            for member in zipped.iterdir():
                if member.is_file() and (member.name in FILES or member.name.endswith(kinds)):
                    with reading("the zip", kept[0]), open(new / member.name, "wb") as file:
                        unpack(member, file)
        meta = read_json(new / META) if (new / META).exists() else {}
        if (new / CONFIG).exists() and meta:  # our own layout, with its card
            meta["downloaded"] = files
        else:  # a card of another project is kept within ours
            meta = _card(folder.name, files) | ({"published": meta} if meta else {})
        write_json(new / META, meta)
        try:
            find_weights(new).check()
        except ValueError as error:
            raise ValueError(str(error).replace(str(new), folder.name)) from error


def _check_origin(name: str, urls: Sequence[str], checksums: Sequence[str]) -> None:
    """Raise a ValueError if the weights of a name come from other addresses, or are other files."""
    meta = find_weights(cache_folder() / name).card().meta
    known = meta.get("downloaded") or meta.get("sources", [])
    there = [str(file.get("url")) for file in known]
    hashes = [str(file.get("sha256")) for file in known]
    wanted = [each.lower().removeprefix("sha256:") for each in checksums]
    if (urls and there != list(urls)) or (wanted and hashes != wanted):
        checksum = f" with SHA-256 {', '.join(hashes)}" if hashes else ""
        raise ValueError(
            f"The weights '{name}' are there already, from {', '.join(there) or 'elsewhere'}"
            f"{checksum}. Give others another --name, or replace them with --force."
        )


def _card(name: str, files: list[dict[str, str]]) -> dict[str, Any]:
    """A card for weights that come without one."""
    meta: dict[str, Any] = {"spacy_elmo": __version__, "name": name}
    if known := published().get(name):
        meta |= {"lang": known.lang, "description": known.text}
    return meta | {"sources": [{"name": _file_name(file["url"]), **file} for file in files]}
