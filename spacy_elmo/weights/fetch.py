"""Downloads weights into the folder of `downloads`: the only code that fetches anything."""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pooch
import requests

from ..about import __version__
from ..util.files import atomic_directory, write_json
from .downloads import NAME, cache_folder, has_no_address, published
from .find import EMBEDDED, GROUP, find_weights, names_in_zip, refuse_others
from .layout import CONFIG, FILES, HDF5, META, OPTIONS
from .published.hdf5 import import_h5py
from .published.weights import folder_in_zip, unpack

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
    if checksums and len(checksums) != len(urls):
        raise ValueError(f"There are {len(urls)} files and {len(checksums)} checksums (--sha256).")
    for checksum in checksums:
        if not re.fullmatch(r"[0-9a-fA-F]{64}", checksum):
            raise ValueError(f"--sha256 is {checksum!r}; it must be 64 hexadecimal digits.")
    folder = cache_folder() / name
    if folder.is_dir() and not force:
        return {"name": name, "path": str(folder), "files": []}
    if len(urls) == 2:
        import_h5py(name)  # before the download rather than after it
    kept = {_kept(folder, url, len(urls) == 1): url for url in urls}
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
        return _check_free(sources[0]), list(known[sources[0]].urls)
    if len(sources) == 1 and (advice := has_no_address(sources[0])):
        raise ValueError(advice)
    names = [_file_name(url) for url in sources]
    kinds = sorted(Path(each).suffix for each in names)
    is_zip = len(kinds) == 1 and kinds[0] not in (".json", *HDF5)
    is_pair = len(kinds) == 2 and kinds[0] in HDF5 and kinds[1] == ".json"
    are_urls = all(re.match("https?://", source, re.IGNORECASE) for source in sources)
    if not are_urls or not (is_zip or is_pair):
        raise ValueError(
            f"Give one name, of {list(known)}; or the address (http:// or https://) of a zip; "
            f"or two addresses, one ending in .json and one in .hdf5. Found {sources}."
        )
    stem = next(Path(each).stem for each in names if not each.endswith(".json"))
    name = name or stem.removesuffix("_weights")
    if not NAME.fullmatch(name):
        raise ValueError(
            f"The weights cannot be stored under the name {name!r}. Give one of letters, digits, "
            f"'.', '_' and '-' with --name."
        )
    return _check_free(name), list(sources)


def _check_free(name: str) -> str:
    """The name, unless embedded or installed weights, which come first, have it."""
    if (EMBEDDED / name).is_dir() or name in entry_points(group=GROUP).names:
        raise ValueError(
            f"There are embedded or installed weights of the name '{name}'. Give another one with "
            f"--name."
        )
    return name


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path).rpartition("/")[2]


def _kept(folder: Path, url: str, is_zip: bool) -> Path:
    """The path of an address's file until the weights in a folder are complete."""
    kind = "zip" if is_zip else "json" if _file_name(url).endswith(".json") else "hdf5"
    digest = sha256(url.encode()).hexdigest()[:8]  # the same name may be given to other addresses
    return folder.with_name(f"{folder.name}-{digest}.{kind}")


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
    """Make the weights of a folder of what was downloaded, and check them."""
    with atomic_directory(folder) as new:
        if len(kept) == 1:
            _unpack(files[0]["url"], kept[0], new)
            origins = {new: kept[0]}
        else:
            origins = {new / (OPTIONS if p.suffix == ".json" else "weights.hdf5"): p for p in kept}
            for target, path in origins.items():
                shutil.copyfile(path, target)  # the other is readable for its owner alone
        if not (new / META).exists():
            _write_card(folder.name, files, new / META)
        try:
            find_weights(new).check()
        except ValueError as error:
            message = str(error)
            for target, path in origins.items():
                message = message.replace(str(target), str(path))
            raise ValueError(message) from error


def _unpack(url: str, archive: Path, folder: Path) -> None:
    """Unpack the files of weights in a zip, and no others; none of its paths are used.

    Raises:
        ValueError: it is no zip, is damaged, or contains no weights.
        OSError: a file cannot be written.
    """
    if not zipfile.is_zipfile(archive):
        raise ValueError(f"{url} is no zip, or a damaged one.")
    refuse_others(url, names_in_zip(archive))
    try:
        for member in folder_in_zip(archive, CONFIG, OPTIONS).iterdir():
            if member.is_file() and (member.name in FILES or member.name.endswith(HDF5)):
                with open(folder / member.name, "wb") as file:
                    unpack(member, file)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{url}: the zip is damaged ({error}).") from error


def _write_card(name: str, files: list[dict[str, str]], path: Path) -> None:
    """Write a card for weights that come without one."""
    meta: dict[str, Any] = {"spacy_elmo": __version__, "name": name}
    if known := published().get(name):
        meta |= {"lang": known.lang, "description": known.text}
    meta["sources"] = [{"name": _file_name(file["url"]), **file} for file in files]
    write_json(path, meta)
