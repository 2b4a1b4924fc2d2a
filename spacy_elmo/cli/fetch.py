"""A file from an address, in as many attempts as it takes."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from pathlib import Path

import requests

from ..about import __title__, __version__
from ..bilm.files import write_text
from ..progress import Progress

RETRIES, PAUSE = 3, 0.5  # attempts without a new byte; seconds, doubled before each of them
MAX_BYTES = 2**34  # the largest published weights have less than a tenth
CHUNK = 2**14  # of an attempt that breaks off, all whole chunks are used
BROKEN = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)


class FetchError(ValueError):
    """A file cannot be downloaded; trying again would not help, or has not."""


class _Interrupted(Exception):
    """An attempt broke off; another one may succeed."""


def fetch(
    url: str, path: Path, sha256: str | None = None, timeout: float = 30.0, quiet: bool = False
) -> str:
    """Download a file, continuing what an earlier attempt, or process, has left at the path.

    An attempt that breaks off or stalls is followed by another one, which asks the server for the
    rest of the same version of the file (``Range`` with ``If-Range``).

    Args:
        url: http or https.
        path: of the file, whole or in part; a note of its version lies beside it.
        sha256: checksum in hexadecimal digits that the file must have, if known.
        timeout: seconds to wait for a connection, and for each next piece.
        quiet: no progress on the standard error stream.

    Returns:
        The SHA-256 of the file.

    Raises:
        FetchError: the address, the server or the file is wrong, or nothing arrives.
        OSError: the file cannot be written.
    """
    failures = 0
    while True:
        before = _size(path)
        try:
            _attempt(url, path, timeout, quiet)
            break
        except (_Interrupted, *BROKEN) as error:
            failures = 0 if _size(path) > before else failures + 1
            if failures > RETRIES:
                raise FetchError(
                    f"Cannot download {url}: {error}. Check the address and the network; the same "
                    f"command continues where this one stopped ({_size(path):,} bytes)."
                ) from error
        except requests.RequestException as error:
            raise FetchError(f"Cannot download {url}: {error}") from error
        time.sleep(PAUSE * 2**failures)
    found = _sha256(path)
    if sha256 is not None and found != sha256.lower():
        _forget(path)
        raise FetchError(
            f"{url}: the SHA-256 of the file is {found}, expected {sha256.lower()}. It has been "
            f"removed. The file may have changed since its checksum was noted, or on its way."
        )
    return found


def _attempt(url: str, path: Path, timeout: float, quiet: bool) -> None:
    """Download the rest of a file."""
    start, version = _size(path), _version(path, url)
    headers = {"Accept-Encoding": "identity", "User-Agent": f"{__title__}/{__version__}"}
    if start and version:
        headers.update({"Range": f"bytes={start}-", "If-Range": version})
    with requests.get(url, headers=headers, stream=True, timeout=timeout) as response:
        _check_addresses(response)
        if response.status_code == 416:  # nothing after what is there
            if start and response.headers.get("Content-Range") == f"bytes */{start}":
                return
            _forget(path)
            raise _Interrupted("the file has changed on the server")
        if response.status_code >= 500 or response.status_code == 429:
            raise _Interrupted(f"the server answered {response.status_code} {response.reason}")
        if response.status_code not in (200, 206):
            raise FetchError(
                f"Cannot download {url}: the server answered {response.status_code} "
                f"{response.reason}."
            )
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise FetchError(f"Cannot download {url}: the server sends it compressed, unasked.")
        if response.status_code == 200:
            start = 0
        elif _first_byte(response) != start:
            _forget(path)
            raise _Interrupted("the server sent another part of the file than the one requested")
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() else None
        _check_space(url, path, start, total)
        write_text(_note(path), json.dumps({"url": url, "version": _strong_version(response)}))
        with (
            Progress("bytes", total, start, quiet) as progress,
            open(path, "r+b" if start else "wb") as file,
        ):
            file.seek(start)
            for chunk in response.iter_content(CHUNK):
                if file.tell() + len(chunk) > MAX_BYTES:
                    raise FetchError(f"{url}: the file has more than {MAX_BYTES:,} bytes.")
                file.write(chunk)
                progress.update(len(chunk))
    if total is not None and _size(path) != total:
        raise _Interrupted(f"the connection broke off after {_size(path):,} of {total:,} bytes")


def _check_addresses(response: requests.Response) -> None:
    """Raise a FetchError if a redirect has left https. (Other protocols raise in `requests`.)"""
    addresses = [each.url for each in (*response.history, response)]
    encrypted = [address.lower().startswith("https:") for address in addresses]
    if encrypted != sorted(encrypted):
        raise FetchError(
            f"Cannot download {addresses[0]}: it redirects to {addresses[-1]}, which is not "
            f"encrypted. Give that address yourself if you trust it."
        )


def _check_space(url: str, path: Path, start: int, total: int | None) -> None:
    free = shutil.disk_usage(path.parent).free
    if total is not None and (total > MAX_BYTES or total - start > free):
        raise FetchError(
            f"{url} has {total:,} bytes, more than can be stored: '{path.parent}' has {free:,} "
            f"bytes left, and weights may have up to {MAX_BYTES:,}."
        )


def _first_byte(response: requests.Response) -> int:
    """Where the part begins that a 206 brings; -1 if the server does not tell."""
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else -1


def _strong_version(response: requests.Response) -> str | None:
    """What identifies this very version of the file, for ``If-Range``."""
    etag = response.headers.get("ETag", "W/")
    return response.headers.get("Last-Modified") if etag.startswith("W/") else etag


def _version(path: Path, url: str) -> str | None:
    """The version of which a part is at the path; None if it cannot be continued."""
    try:
        note = json.loads(_note(path).read_text("utf-8"))
        return str(note["version"]) if note["url"] == url and note["version"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.version")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _forget(path: Path) -> None:
    for file in (path, _note(path)):
        file.unlink(missing_ok=True)
