"""``python -m spacy elmo download``: the only code that fetches anything."""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

import typer
from wasabi import msg

from ..about import __version__
from ..bilm.download_folder import NAME, PUBLISHED, cache_folder, downloaded_names
from .options import Json, Quiet, print_json, report_errors


def download_cli(
    sources: Annotated[list[str] | None, typer.Argument(help="Name of published weights; or an address, of a zip of weights, or two, of options.json and of the HDF5 file", metavar="NAME|URL...", show_default=False)] = None,
    name: Annotated[str | None, typer.Option("--name", "-n", help="Name for weights from an address (default: from the address)")] = None,
    sha256: Annotated[list[str] | None, typer.Option("--sha256", "-s", help="Checksum of the file, in hexadecimal; for two files give it twice, in their order", show_default=False)] = None,
    force: Annotated[bool, typer.Option("--force", "-F", help="Download again what has been downloaded before")] = False,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds without a byte after which the connection is given up and made again", min=0.1)] = 30.0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """
    Download published weights.

    They are stored in your cache folder ($SPACY_ELMO_CACHE), checked, and from then on found by
    their name, without a network: weights = "NAME". An interrupted download continues where it
    stopped when the command is repeated. Nothing else in this package downloads anything. Without
    an argument, the command lists the weights that it knows by name.
    """
    if not sources:
        _print_list(as_json)
        return
    with report_errors("Cannot download the weights", as_json=as_json):
        result = download(sources, name, sha256 or [], force, timeout, quiet)
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
    sha256: list[str] | None = None,
    force: bool = False,
    timeout: float = 30.0,
    quiet: bool = False,
) -> dict[str, Any]:
    """Download weights into the cache folder, unless they are there.

    Args:
        sources: a name of `PUBLISHED`, one address or two.
        name: for weights from an address.
        sha256: a checksum for each address, or none.
        force: replace weights of the same name.
        timeout, quiet: see `fetch`.

    Returns:
        ``name``, ``path``, and ``files``: ``url`` and ``sha256`` of each that was fetched.

    Raises:
        ValueError: an argument is wrong, or what arrives is no biLM.
        OSError: it cannot be written.
    """
    from .fetch import fetch

    name, urls = _resolve(sources, name)
    if sha256 and len(sha256) != len(urls):
        raise ValueError(f"There are {len(urls)} files and {len(sha256)} checksums (--sha256).")
    for checksum in sha256 or []:
        if not re.fullmatch(r"[0-9a-fA-F]{64}", checksum):
            raise ValueError(f"--sha256 is {checksum!r}; it must be 64 hexadecimal digits.")
    _check_free(name)
    folder = cache_folder() / name
    if folder.is_dir() and not force:
        return {"name": name, "path": str(folder), "files": []}
    if any(_is_hdf5(_file_name(url)) for url in urls):
        _import_h5py(name)  # before the download rather than after it
    parts = folder.with_name(f".{name}.download")
    parts.mkdir(parents=True, exist_ok=True)
    files = []
    with _locked(parts):
        for index, (target, url) in enumerate(zip(_targets(urls), urls, strict=True)):
            expected = sha256[index] if sha256 else None
            found = fetch(url, parts / target, expected, timeout, quiet)
            files.append({"url": url, "sha256": found})
        _install(name, files, parts, folder)
    return {"name": name, "path": str(folder), "files": files}


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


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes, where the system has such locks.

    Raises:
        ValueError: another process has locked it.
    """
    try:
        import fcntl
    except ImportError:  # on Windows
        yield
        return
    with open(folder / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"Another process is downloading into '{folder}'.") from None
        yield


def _check_free(name: str) -> None:
    """Raise a ValueError if embedded or installed weights, which come first, have the name."""
    from ..bilm.find_weights import EMBEDDED, GROUP

    if (EMBEDDED / name).is_dir() or name in entry_points(group=GROUP).names:
        raise ValueError(
            f"There are embedded or installed weights of the name '{name}'. Give another one with "
            f"--name."
        )


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path).rpartition("/")[2]


def _is_hdf5(name: str) -> bool:
    from ..bilm.base_weights import HDF5

    return name.endswith(HDF5)


def _targets(urls: list[str]) -> list[str]:
    """The names under which the files are stored; none comes from the network."""
    if len(urls) == 1:
        return ["weights.zip"]
    return ["options.json" if _file_name(url).endswith(".json") else "weights.hdf5" for url in urls]


def _install(name: str, files: list[dict[str, str]], parts: Path, folder: Path) -> None:
    """Check what was downloaded, and give it its name."""
    from ..bilm.files import atomic_directory
    from ..bilm.find_weights import find_weights

    archive = parts / "weights.zip"
    wanted = _wanted(archive) if len(files) == 1 else {}
    if any(_is_hdf5(member) for member in wanted):
        _import_h5py(name)  # without it the download stays, for the next time
    try:
        with atomic_directory(folder) as new:
            for member, target in wanted.items():
                with zipfile.ZipFile(archive) as opened, opened.open(member) as packed:
                    with open(new / target, "wb") as file:
                        shutil.copyfileobj(packed, file)
            for target in ("options.json", "weights.hdf5") if len(files) == 2 else ():
                (parts / target).replace(new / target)
            _describe(name, files, new)
            find_weights(new).check()
    except zipfile.BadZipFile as error:
        raise ValueError(f"{files[0]['url']}: the zip is damaged ({error}).") from error
    finally:
        shutil.rmtree(parts)


def _wanted(archive: Path) -> dict[str, str]:
    """The files of weights in a zip, and the names under which they are unpacked."""
    from ..bilm.base_weights import CONFIG, FILES, OPTIONS
    from ..bilm.find_weights import names_in_zip, refuse_others
    from ..bilm.published.weights import MAX_PACKED_RATIO, MAX_UNPACKED

    try:
        if not zipfile.is_zipfile(archive):
            raise ValueError("What the address leads to is no zip.")
        refuse_others("The zip", names_in_zip(archive))
        with zipfile.ZipFile(archive) as opened:
            members = {item.filename: item for item in opened.infolist()}
        tops = [top for top in members if top.rpartition("/")[2] in (CONFIG, OPTIONS)]
        if len(tops) != 1:
            raise ValueError(f"The zip must have one {CONFIG} or {OPTIONS}, found {len(tops)}.")
        start = tops[0].rpartition("/")[0]
        beside = {m: m.rpartition("/")[2] for m in members if m.rpartition("/")[0] == start}
        wanted = {m: n for m, n in beside.items() if n in FILES or _is_hdf5(n)}
        unpacked = sum(members[member].file_size for member in wanted)
        most = MAX_UNPACKED + MAX_PACKED_RATIO * archive.stat().st_size
        if unpacked > min(most, shutil.disk_usage(archive.parent).free):
            raise ValueError(
                f"The zip would unpack to {unpacked:,} bytes, more than weights in a zip of "
                f"{archive.stat().st_size:,} bytes can have, or than there is space for."
            )
        return wanted
    except ValueError:
        shutil.rmtree(archive.parent)
        raise


def _describe(name: str, files: list[dict[str, str]], folder: Path) -> None:
    """Write a card for weights that come without one."""
    from ..bilm.base_weights import META
    from ..bilm.files import write_json

    if (folder / META).exists():
        return
    meta: dict[str, Any] = {"spacy_elmo": __version__, "name": name}
    if name in PUBLISHED:
        meta.update({"lang": PUBLISHED[name].lang, "description": PUBLISHED[name].text})
    meta["sources"] = [{"name": _file_name(file["url"]), **file} for file in files]
    write_json(folder / META, meta)


def _import_h5py(name: str) -> None:
    from ..bilm.published.hdf5 import import_h5py

    import_h5py(name)


def _print_list(as_json: bool) -> None:
    """The weights that have a name, and what has been downloaded."""
    there = downloaded_names()
    if as_json:
        known = {name: {"urls": each.urls, "lang": each.lang, "text": each.text, "megabytes": each.megabytes} for name, each in PUBLISHED.items()}  # fmt: skip
        print_json({"cache": str(cache_folder()), "downloaded": there, "published": known})
        return
    rows = [
        (name, each.lang, f"{each.megabytes} MB" if each.megabytes else "", each.text, "✔" if name in there else "")
        for name, each in PUBLISHED.items()
    ]  # fmt: skip
    rows += [(name, "", "", "", "✔") for name in there if name not in PUBLISHED]
    msg.table(rows, header=("Name", "Lang", "Size", "Trained on", "Here"), divider=True)
    print(f"Cache folder: {cache_folder()}")
