"""``python -m spacy elmo download``: the only code that fetches anything."""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

import typer
from wasabi import msg

from ..about import __version__
from ..weights.downloads import NAME, PUBLISHED, cache_folder, downloaded_names
from .options import Json, Quiet, print_json, report_errors


def download_cli(
    sources: Annotated[list[str] | None, typer.Argument(help="Name of published weights; or an address, of a zip of weights, or two, of options.json and of the HDF5 file", metavar="NAME|URL...", show_default=False)] = None,
    name: Annotated[str | None, typer.Option("--name", "-n", help="Name for weights from an address (default: from the address)")] = None,
    checksums: Annotated[list[str] | None, typer.Option("--sha256", "-s", help="Checksum of the file, in hexadecimal; for two files give it twice, in their order", show_default=False)] = None,
    force: Annotated[bool, typer.Option("--force", "-F", help="Download again what has been downloaded before")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """
    Download published weights.

    They are stored in your cache folder ($SPACY_ELMO_CACHE), checked, and from then on found by
    their name, without a network: weights = "NAME". Nothing else in this package downloads
    anything. Without an argument, the command lists the weights that it knows by name, with their
    addresses.
    """
    if not sources:
        _print_list(as_json)
        return
    with report_errors("Cannot download the weights", as_json=as_json):
        result = download(sources, name, checksums, force, quiet)
    if as_json:
        print_json(result)
    elif not quiet:
        for file in result["files"]:
            print(f"SHA-256 {file['sha256']}  {file['url']}")
        what = "Downloaded" if result["files"] else "Already downloaded:"
        msg.good(f"{what} the weights {result['name']}", result["path"])
        print(
            f'Use them as: nlp.add_pipe("elmo", config={{"model": {{"weights": "{result["name"]}"}}}})'
        )


def download(
    sources: list[str],
    name: str | None = None,
    checksums: list[str] | None = None,
    force: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Download weights into the cache folder, unless they are there.

    Each file is kept beside the folder of the weights until they are complete there, and is not
    fetched again before.

    Args:
        sources: a name of `PUBLISHED`, one address or two.
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
    import pooch

    from ..weights.published.hdf5 import import_h5py

    name, urls = _resolve(sources, name)
    if checksums and len(checksums) != len(urls):
        raise ValueError(f"There are {len(urls)} files and {len(checksums)} checksums (--sha256).")
    for checksum in checksums or []:
        if not re.fullmatch(r"[0-9a-fA-F]{64}", checksum):
            raise ValueError(f"--sha256 is {checksum!r}; it must be 64 hexadecimal digits.")
    _check_free(name)
    folder = cache_folder() / name
    if folder.is_dir() and not force:
        return {"name": name, "path": str(folder), "files": []}
    if len(urls) == 2:
        import_h5py(name)  # before the download rather than after it
    fetched = {_kept(folder, url, len(urls) == 1): url for url in urls}
    for path in fetched if force else ():
        path.unlink(missing_ok=True)
    _fetch(fetched, checksums or [None] * len(urls), quiet)
    files = [{"url": url, "sha256": pooch.file_hash(path)} for path, url in fetched.items()]
    try:
        _install(files, list(fetched), folder)
    except (ValueError, OSError) as error:
        kept = " and ".join(f"'{path}'" for path in fetched)
        raise ValueError(
            f"{error} The download is kept in {kept}: the same command goes on from there, with "
            f"--force it begins anew."
        ) from error
    return {"name": name, "path": str(folder), "files": files}


def _fetch(fetched: dict[Path, str], checksums: Sequence[str | None], quiet: bool) -> None:
    """Download files, each whole or not at all, unless they are there and have their checksums.

    Raises:
        ValueError: one cannot be reached, is not there, or is another one.
        OSError: one cannot be written.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    show = not quiet and sys.stderr.isatty()
    downloader = pooch.HTTPDownloader(progressbar=show, chunk_size=2**16)
    broken = requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError
    for (path, url), checksum in zip(fetched.items(), checksums, strict=True):
        try:
            pooch.retrieve(url, checksum, path.name, path.parent, downloader=downloader)
        except broken as error:
            missing = (f"{url} as '{path}'" for path, url in fetched.items() if not path.exists())
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


def _resolve(sources: list[str], name: str | None) -> tuple[str, list[str]]:
    """The name of the weights, and their addresses."""
    urls = [source for source in sources if re.match(r"https?://", source, flags=re.IGNORECASE)]
    if len(sources) == 1 and not urls:
        if sources[0] not in PUBLISHED:
            raise ValueError(
                f"'{sources[0]}' is neither an address (http:// or https://) nor one of the names "
                f"{list(PUBLISHED)}."
            )
        if name is not None:
            raise ValueError("--name is for weights from an address; these have one.")
        return sources[0], list(PUBLISHED[sources[0]].urls)
    names = [_file_name(url) for url in urls]
    kinds = sorted(Path(each).suffix for each in names)
    if len(urls) != len(sources) or not (
        len(urls) == 1 or (len(urls) == 2 and kinds[1] == ".json" and _is_hdf5(kinds[0]))
    ):
        raise ValueError(
            f"Give one name, the address of one zip, or two addresses, one ending in .json and one "
            f"in .hdf5; found {sources}."
        )
    if len(urls) == 1 and (names[0].endswith(".json") or _is_hdf5(names[0])):
        raise ValueError(
            f"{urls[0]} is one of two files: give the addresses of options.json and of the HDF5 "
            f"file."
        )
    stems = [Path(each).stem for each in names if not each.endswith(".json")]
    name = name or stems[0].removesuffix("_weights")
    if not NAME.fullmatch(name):
        raise ValueError(
            f"The weights cannot be stored under the name {name!r}. Give one of letters, digits, "
            f"'.', '_' and '-' with --name."
        )
    return name, urls


def _check_free(name: str) -> None:
    """Raise a ValueError if embedded or installed weights, which come first, have the name."""
    from ..weights.find import EMBEDDED, GROUP

    if (EMBEDDED / name).is_dir() or name in entry_points(group=GROUP).names:
        raise ValueError(
            f"There are embedded or installed weights of the name '{name}'. Give another one with "
            f"--name."
        )


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path).rpartition("/")[2]


def _is_hdf5(name: str) -> bool:
    from ..weights.layout import HDF5

    return name.endswith(HDF5)


def _kept(folder: Path, url: str, is_zip: bool) -> Path:
    """Where the file of an address is kept until the weights in a folder are complete."""
    kind = "zip" if is_zip else "json" if _file_name(url).endswith(".json") else "hdf5"
    digest = sha256(url.encode()).hexdigest()[:8]  # the same name may be given to other addresses
    return folder.with_name(f"{folder.name}-{digest}.{kind}")


def _install(files: list[dict[str, str]], fetched: list[Path], folder: Path) -> None:
    """Check what was downloaded, and make it the weights of the name of a folder."""
    from ..util.files import atomic_directory
    from ..weights.find import find_weights
    from ..weights.layout import OPTIONS

    with atomic_directory(folder) as new:
        if len(fetched) == 1:
            _unpack(files[0]["url"], fetched[0], new)
            origins = {new: fetched[0]}
        else:
            origins = {
                new / (OPTIONS if p.suffix == ".json" else "weights.hdf5"): p for p in fetched
            }
            for target, path in origins.items():
                shutil.copyfile(path, target)  # the other is readable for its owner alone
        _describe(folder.name, files, new)
        try:
            find_weights(new).check()
        except ValueError as error:
            message = str(error)
            for target, path in origins.items():
                message = message.replace(str(target), str(path))
            raise ValueError(message) from error
    for path in fetched:
        path.unlink()


def _unpack(url: str, archive: Path, folder: Path) -> None:
    """Unpack the files of weights in a zip, and no others; none of its paths are used.

    Raises:
        ValueError: it is no zip, is damaged, or contains no weights.
        OSError: a file cannot be written.
    """
    from ..weights.find import names_in_zip, refuse_others
    from ..weights.layout import CONFIG, FILES, OPTIONS
    from ..weights.published.weights import refuse_bomb

    if not zipfile.is_zipfile(archive):
        raise ValueError(f"{url} is no zip, or a damaged one.")
    refuse_others(url, names_in_zip(archive))
    try:
        with zipfile.ZipFile(archive) as opened:
            names = opened.namelist()
            tops = [top for top in names if top.rpartition("/")[2] in (CONFIG, OPTIONS)]
            if len(tops) != 1:
                raise ValueError(
                    f"{url}: the zip must have one {CONFIG} or {OPTIONS}, found {len(tops)}."
                )
            top = tops[0].rpartition("/")[0]
            for member in names:
                start, _, file = member.rpartition("/")
                if start == top and (file in FILES or _is_hdf5(file)):
                    refuse_bomb(opened.getinfo(member))
                    with opened.open(member) as packed, open(folder / file, "wb") as unpacked:
                        shutil.copyfileobj(packed, unpacked, 2**20)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{url}: the zip is damaged ({error}).") from error


def _describe(name: str, files: list[dict[str, str]], folder: Path) -> None:
    """Write a card for weights that come without one."""
    from ..util.files import write_json
    from ..weights.layout import META

    if (folder / META).exists():
        return
    meta: dict[str, Any] = {"spacy_elmo": __version__, "name": name}
    if name in PUBLISHED:
        meta.update({"lang": PUBLISHED[name].lang, "description": PUBLISHED[name].text})
    meta["sources"] = [{"name": _file_name(file["url"]), **file} for file in files]
    write_json(folder / META, meta)


def _print_list(as_json: bool) -> None:
    """The weights that have a name, and what has been downloaded."""
    there = downloaded_names()
    if as_json:
        known = {name: asdict(each) for name, each in PUBLISHED.items()}
        print_json({"cache": str(cache_folder()), "downloaded": there, "published": known})
        return
    for name, each in PUBLISHED.items():
        size = f"{each.megabytes} MB, " if each.megabytes else ""
        print(f"{name}{' (downloaded)' if name in there else ''}\n  {each.lang}, {size}{each.text}")
        print(*(f"  {url}" for url in each.urls), "", sep="\n")
    others = [name for name in there if name not in PUBLISHED]
    print(f"Cache folder: {cache_folder()}; other weights there: {', '.join(others) or 'none'}")
