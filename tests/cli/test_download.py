"""``elmo download``, from a server on this machine that breaks off, stalls, redirects and lies."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from typer.testing import CliRunner

from spacy_elmo.bilm.download_folder import CACHE_VARIABLE, PUBLISHED, Published, cache_folder
from spacy_elmo.bilm.find_weights import WeightsNotFoundError, find_weights
from spacy_elmo.bilm.own_weights import OwnWeights
from spacy_elmo.cli import app, fetch

from ..pipeline.helpers import write_weights

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "fixtures" / "golden_tiny"
OPTIONS = (GOLDEN / "options.json").read_bytes()
HDF5 = (GOLDEN / "weights.hdf5").read_bytes()

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers.get("Range")))
        answers = self.server.answers[self.path.partition("?")[0]]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        answer(self)

    def log_message(self, *args: Any) -> None:
        pass

    def send(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content_Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)


class Server(ThreadingHTTPServer):
    """Answers of each path: each once, in turn, and the last one from then on."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[tuple[str, str | None]] = []

    def handle_error(self, request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # the client has hung up
            super().handle_error(request, address)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def serve(self, path: str, *answers: Answer) -> str:
        self.answers[path] = list(answers)
        return self.url(path)


def whole(content: bytes, etag: str = '"1"', **headers: str) -> Answer:
    """A file, or the requested part of it, as a well-behaved server sends it."""

    def answer(handler: Handler) -> None:
        wanted = re.match(r"bytes=(\d+)-", handler.headers.get("Range", ""))
        if wanted is None or handler.headers.get("If-Range") != etag:
            return handler.send(content, ETag=etag, **headers)
        start, size = int(wanted[1]), len(content)
        if start >= size:
            return handler.send(b"", 416, Content_Range=f"bytes */{size}")
        place = f"bytes {start}-{size - 1}/{size}"
        return handler.send(content[start:], 206, ETag=etag, Content_Range=place)

    return answer


def broken(content: bytes, n_bytes: int, etag: str = '"1"', stall: float = 0.0) -> Answer:
    """The whole length is promised, but only so many bytes arrive; then the server waits, and
    closes the connection."""

    def answer(handler: Handler) -> None:
        start = int(handler.headers.get("Range", "bytes=0-")[6:-1])
        part = content[start : start + n_bytes]
        length = str(len(content) - start)
        place = f"bytes {start}-{len(content) - 1}/{len(content)}"
        headers = {"ETag": etag, "Content_Length": length, "Content_Range": place}
        handler.send(part, 206 if start else 200, **headers)
        handler.wfile.flush()
        time.sleep(stall)
        handler.close_connection = True

    return answer


def redirect(url: str) -> Answer:
    return lambda handler: handler.send(b"", 302, Location=url)


def status(code: int) -> Answer:
    return lambda handler: handler.send(b"no", code)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "PAUSE", 0.01)
    monkeypatch.setattr(fetch, "CHUNK", 100)
    return tmp_path / "cache"


def download(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["download", *arguments, "--timeout", "1"])


def succeed(*arguments: str) -> str:
    result = download(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def fail(*arguments: str) -> str:
    result = download(*arguments)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    return " ".join(result.output.split())


def two_files(server: Server, *answers: Answer) -> list[str]:
    """Addresses of golden_tiny, whose HDF5 file is answered so."""
    options = server.serve("/a/options.json", whole(OPTIONS))
    return [options, server.serve("/a/tiny_weights.hdf5", *(answers or (whole(HDF5),)))]


def make_zip(files: dict[str, bytes]) -> bytes:
    memory = BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return memory.getvalue()


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.fixture
def h5py() -> Any:
    return pytest.importorskip("h5py")


def test_two_files(server, cache, h5py) -> None:
    output = succeed(*two_files(server))
    assert hashlib.sha256(HDF5).hexdigest() in output
    assert visible(cache) == ["tiny"]
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"weights": "tiny"}})
    direct = spacy.blank("en")
    direct.add_pipe("elmo", config={"model": {"weights": str(GOLDEN)}})
    np.testing.assert_array_equal(nlp("A bank.").tensor, direct("A bank.").tensor)
    sources = find_weights("tiny").card().meta["sources"]
    assert [source["sha256"] for source in sources] == [
        hashlib.sha256(OPTIONS).hexdigest(), hashlib.sha256(HDF5).hexdigest()
    ]  # fmt: skip


def test_no_second_download(server, cache, h5py) -> None:
    """What is there is not fetched again, and needs no server; --force fetches it."""
    urls = two_files(server)
    succeed(*urls)
    n_requests = len(server.requests)
    assert "Already downloaded" in succeed(*urls)
    assert len(server.requests) == n_requests
    succeed(*urls, "--force")
    assert len(server.requests) == n_requests + 2


def test_published_name(server, cache, monkeypatch, h5py) -> None:
    known = Published(tuple(two_files(server)), "de", "Texts", 1)
    monkeypatch.setitem(PUBLISHED, "elmo_small", known)
    with pytest.raises(WeightsNotFoundError, match="python -m spacy elmo download elmo_small"):
        find_weights("elmo_small")
    succeed("elmo_small")
    card = find_weights("elmo_small").card()
    assert card.meta["lang"] == "de"
    assert not server.answers.clear()
    assert "Already" in succeed("elmo_small")


def test_published_zip(server, cache, h5py) -> None:
    """As the NLPL repository has them; its own card is left as it is."""
    files = {"options.json": OPTIONS, "model.hdf5": HDF5, "meta.json": b'{"id": 1}', "x.py": b"1"}
    succeed(server.serve("/20/7.zip", whole(make_zip(files))), "--name", "german")
    assert visible(cache / "german") == ["meta.json", "model.hdf5", "options.json"]
    assert find_weights("german").card().meta == {"published": {"id": 1}}


def test_own_zip(server, cache, tmp_path) -> None:
    """A directory of our layout as a zip, in a folder; a name from the address, without h5py."""
    weights = write_weights(tmp_path / "mine")
    files = {f"mine/{path.name}": path.read_bytes() for path in weights.iterdir()}
    output = succeed(server.serve("/v1/mine.zip", whole(make_zip(files))) + "?version=/2")
    assert '"weights": "mine"' in output
    found = find_weights("mine")
    assert isinstance(found, OwnWeights) and found.where == str(cache / "mine")
    found.load()


def test_resumed_after_breaks_and_stalls(server, cache, h5py) -> None:
    third = len(HDF5) // 300 * 100
    urls = two_files(server, broken(HDF5, third), broken(HDF5, third, stall=3), whole(HDF5))
    succeed(*urls)
    ranges = [wanted for path, wanted in server.requests if path.endswith("hdf5")]
    assert ranges == [None, f"bytes={third}-", f"bytes={2 * third}-"]
    assert (cache / "tiny" / "weights.hdf5").read_bytes() == HDF5


def test_resumed_by_the_next_command(server, cache, h5py) -> None:
    urls = two_files(server, broken(HDF5, 1000), status(503))
    assert "503" in fail(*urls) and "1,000 bytes" in fail(*urls)
    with pytest.raises(WeightsNotFoundError):
        find_weights("tiny")
    server.serve("/a/tiny_weights.hdf5", whole(HDF5))
    server.requests.clear()
    succeed(*urls)
    # The first file was whole, and is not sent again.
    assert server.requests == [
        ("/a/options.json", f"bytes={len(OPTIONS)}-"), ("/a/tiny_weights.hdf5", "bytes=1000-")
    ]  # fmt: skip
    assert visible(cache) == ["tiny"]


def test_another_version_starts_over(server, cache, h5py) -> None:
    """A part of yesterday's file is never continued with today's."""
    urls = two_files(server, broken(b"x" * len(HDF5), 1000, etag='"old"'), whole(HDF5, '"new"'))
    succeed(*urls)
    assert (cache / "tiny" / "weights.hdf5").read_bytes() == HDF5


def test_server_without_ranges(server, cache, h5py) -> None:
    def plain(handler: Handler) -> None:
        handler.send(HDF5, ETag='"1"')

    succeed(*two_files(server, broken(HDF5, 1000), plain))
    assert (cache / "tiny" / "weights.hdf5").read_bytes() == HDF5


def test_wrong_range_is_not_appended(server, cache, h5py) -> None:
    def elsewhere(handler: Handler) -> None:
        handler.send(HDF5[5:], 206, ETag='"1"', Content_Range=f"bytes 5-/{len(HDF5)}")

    succeed(*two_files(server, broken(HDF5, 1000), elsewhere, whole(HDF5)))
    assert (cache / "tiny" / "weights.hdf5").read_bytes() == HDF5


def test_part_longer_than_the_file(server, cache, monkeypatch, h5py) -> None:
    monkeypatch.setattr(fetch, "CHUNK", len(HDF5) + 2)
    urls = two_files(server, broken(HDF5 + b"more", len(HDF5) + 2), status(503))
    fail(*urls)
    server.serve("/a/tiny_weights.hdf5", whole(HDF5))
    succeed(*urls)


def test_broken_for_good(server, cache, h5py) -> None:
    error = fail(*two_files(server, broken(HDF5, 0)))
    assert "tiny_weights.hdf5" in error and "network" in error
    assert len(server.requests) == 1 + 1 + fetch.RETRIES


def test_no_server(server, cache, h5py) -> None:
    url = server.url("/a/mine.zip")
    server.server_close()
    error = fail(url.replace("127.0.0.1", "localhost"))
    assert "Check the address and the network" in error


@pytest.mark.parametrize("code", [403, 404])
def test_refused(server, cache, code, h5py) -> None:
    assert str(code) in fail(*two_files(server, status(code)))
    assert len(server.requests) == 2  # no second attempt


def test_redirects(server, cache, h5py) -> None:
    url = server.serve("/there.hdf5", whole(HDF5))
    succeed(*two_files(server, redirect(url)))


@pytest.mark.parametrize("target", ["ftp://example.org/x", "file:///etc/passwd"])
def test_redirect_to_another_protocol(server, cache, target) -> None:
    error = fail(server.serve("/x.zip", redirect(target)))
    assert "No connection adapters" in error
    assert not list(cache.glob("[!.]*"))


def test_redirect_in_circles(server, cache) -> None:
    assert "redirects" in fail(server.serve("/x.zip", redirect(server.url("/x.zip"))))


def test_redirect_from_https_to_http() -> None:
    """Not followed into the open; a server with a certificate is not needed to see that."""
    import requests

    first, last = requests.Response(), requests.Response()
    first.url, last.url, last.history = "https://a/x.zip", "http://a/x.zip", [first]
    with pytest.raises(fetch.FetchError, match="not encrypted"):
        fetch._check_addresses(last)
    first.url, last.url = last.url, first.url
    fetch._check_addresses(last)


def test_checksum(server, cache, h5py) -> None:
    urls = two_files(server)
    right = [hashlib.sha256(content).hexdigest() for content in (OPTIONS, HDF5)]
    error = fail(*urls, "-s", right[0], "-s", right[0])
    assert right[0] in error and right[1] in error and "removed" in error
    assert not list(cache.glob(".*.download/weights.hdf5"))
    succeed(*urls, "-s", right[0].upper(), "-s", right[1])
    assert "64 hexadecimal digits" in fail(*urls, "-F", "-s", "1" * 63, "-s", right[1])
    assert "2 files and 1 checksums" in fail(*urls, "-F", "-s", right[0])


def test_size_that_cannot_be(server, cache, h5py) -> None:
    """A claim of terabytes is refused before a byte is stored."""
    huge = str(10**15)
    assert "more than can be stored" in fail(*two_files(server, whole(HDF5, Content_Length=huge)))


def test_endless(server, cache, monkeypatch, h5py) -> None:
    """Without a length, a file may not grow without end."""
    monkeypatch.setattr(fetch, "MAX_BYTES", 10**6)

    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.close_connection = True
        try:
            while True:
                handler.wfile.write(b"x" * 2**16)
        except OSError:
            pass

    assert "more than 1,000,000 bytes" in fail(*two_files(server, endless))


def test_compressed_unasked(server, cache, h5py) -> None:
    answer = whole(gzip.compress(HDF5), Content_Encoding="gzip")
    assert "compressed, unasked" in fail(*two_files(server, answer))


def test_a_page_instead_of_weights(server, cache, h5py) -> None:
    """As from a network that asks for a login: nothing gets a name, nothing stays."""
    page = whole(b"<html>Log in</html>")
    error = fail(*two_files(server, page))
    assert "weights.hdf5" in error
    assert "no zip" in fail(server.serve("/x.zip", page))
    assert visible(cache) == []


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"encoder.pkl": b"", "token_embedder.pkl": b""}, "ELMoForManyLangs"),
        ({"../options.json": OPTIONS, "model.hdf5": HDF5}, "leads out of it"),
        ({"readme.txt": b"hello"}, "found 0"),
        ({"a/options.json": OPTIONS, "b/options.json": OPTIONS}, "found 2"),
        ({"config.json": b"{}"}, "config.json"),
    ],
)
def test_zips_without_weights(server, cache, files, message) -> None:
    assert message in fail(server.serve("/x.zip", whole(make_zip(files))))
    assert visible(cache) == []


def test_zip_bomb(server, cache, monkeypatch) -> None:
    monkeypatch.setattr("spacy_elmo.bilm.published.weights.MAX_UNPACKED", 2**20)
    memory = BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", b"{}")
        archive.writestr("weights.safetensors", bytes(2**23))
    error = fail(server.serve("/x.zip", whole(memory.getvalue())))
    assert "would unpack to 8,388,610 bytes" in error
    assert visible(cache) == []


def test_damaged_zip(server, cache, h5py) -> None:
    content = bytearray(make_zip({"options.json": OPTIONS, "model.hdf5": HDF5}))
    content[len(content) // 2] ^= 1
    assert "damaged" in fail(server.serve("/x.zip", whole(bytes(content))))
    assert visible(cache) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["elmo_large"], "elmo_small"),
        (["en_sm", "other"], "Give one name"),
        (["http://x/options.json"], "one of two files"),
        (["http://x/a.hdf5", "http://x/b.hdf5"], "two addresses"),
        (["http://x/a.zip", "--name", "../a"], "--name"),
        (["http://x/%2e%2e%2fetc.zip"], "--name"),
        (["elmo_small", "--name", "a"], "--name"),
        (["http://x/en_sm.zip"], "embedded or installed weights of the name 'en_sm'"),
        (["ftp://x/a.zip"], "neither an address"),
    ],
)
def test_arguments(cache, arguments, message) -> None:
    if message != "--name" or "zip" not in arguments[0] or "--name" in arguments:
        assert message in fail(*arguments)
    else:  # the last part of the address alone is looked at
        assert "etc" not in visible(cache)
        assert "network" in fail(*arguments)


def test_list(cache, server, tmp_path) -> None:
    content = make_zip({p.name: p.read_bytes() for p in write_weights(tmp_path / "m").iterdir()})
    succeed(server.serve("/mine.zip", whole(content)))
    data = json.loads(succeed("--json"))
    assert data["cache"] == str(cache) and data["downloaded"] == ["mine"]
    assert set(data["published"]) == set(PUBLISHED)
    output = succeed()
    assert all(name in output for name in (*PUBLISHED, "mine"))


def test_nothing_else_fetches(cache) -> None:
    """An address in a config is an error that names the command."""
    with pytest.raises(WeightsNotFoundError, match="spacy elmo download"):
        find_weights("https://example.org/mine.zip")
    with pytest.raises(WeightsNotFoundError, match="downloaded weights are"):
        find_weights("nothing")


def test_names_do_not_lead_out_of_the_cache(cache, tmp_path) -> None:
    cache.mkdir()
    write_weights(tmp_path / "outside")
    with pytest.raises(WeightsNotFoundError):
        find_weights("../outside")


@pytest.mark.slow
def test_a_kill_is_survived(server, cache, h5py) -> None:
    """SIGKILL while a file arrives; the same command completes it."""
    urls = two_files(server, broken(HDF5, 2**15, stall=60), whole(HDF5))
    environment = {**os.environ, CACHE_VARIABLE: str(cache), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "spacy", "elmo", "download", *urls]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    part = cache / ".tiny.download" / "weights.hdf5"
    deadline = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert visible(cache) == [".tiny.download"]
    succeed(*urls)
    assert (cache / "tiny" / "weights.hdf5").read_bytes() == HDF5
    assert visible(cache) == ["tiny"]


def test_two_at_once(server, cache, h5py) -> None:
    fcntl = pytest.importorskip("fcntl")
    parts = cache / ".tiny.download"
    parts.mkdir(parents=True)
    with open(parts / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "Another process" in fail(*two_files(server))
        assert not server.requests
    succeed(*two_files(server))
    assert visible(cache) == ["tiny"]


def test_default_folder(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == tmp_path / "spacy-elmo"
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("HOME", "/Users/me")
    assert cache_folder() == Path("/Users/me/Library/Caches/spacy-elmo")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/c/local")
    assert cache_folder() == Path("/c/local/spacy-elmo")
