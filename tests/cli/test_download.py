"""``elmo download`` from a server on this machine that breaks off, stalls, redirects, refuses."""

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

from spacy_elmo import about
from spacy_elmo.cli import app
from spacy_elmo.weights.catalogue import CACHE_VARIABLE, PUBLISHED, Published, cache_folder
from spacy_elmo.weights.find import WeightsNotFoundError, find_weights
from spacy_elmo.weights.native import NativeWeights

from ..pipeline.helpers import write_weights

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "fixtures" / "golden_tiny"
OPTIONS = (GOLDEN / "options.json").read_bytes()
HDF5 = (GOLDEN / "weights.hdf5").read_bytes()

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
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
        self.requests: list[str] = []

    def handle_error(self, request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # the client has hung up
            super().handle_error(request, address)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def serve(self, path: str, *answers: Answer) -> str:
        self.answers[path] = list(answers)
        return self.url(path)


def whole(content: bytes, **headers: str) -> Answer:
    return lambda handler: handler.send(content, **headers)


def broken(content: bytes, n_bytes: int, stall: float = 0.0) -> Answer:
    """The whole length is promised, but only so many bytes arrive; then the server waits, and
    closes the connection."""

    def answer(handler: Handler) -> None:
        handler.send(content[:n_bytes], Content_Length=str(len(content)))
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
    monkeypatch.setattr("pooch.downloaders.DEFAULT_TIMEOUT", 1)
    return tmp_path / "cache"


def download(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["download", *arguments])


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


def make_zip(files: dict[str, bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    memory = BytesIO()
    with zipfile.ZipFile(memory, "w", how) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return memory.getvalue()


def visible(folder: Path) -> list[str]:
    """What is in a folder; names without the digest of an address."""
    names = (path.name for path in folder.iterdir()) if folder.exists() else ()
    return sorted(re.sub(r"-[0-9a-f]{8}\.", ".", name) for name in names)


def only(folder: Path, pattern: str) -> Path:
    [path] = folder.glob(pattern)
    return path


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


def test_the_projects_own(server, cache, tmp_path, monkeypatch) -> None:
    """A wheel of `elmo package` at the project's address, once it has one; till then an error."""
    with pytest.raises(WeightsNotFoundError, match=r"has no address.*project/weights/de_sm"):
        find_weights("de_sm")
    assert "has no address" in fail("de_sm")
    assert "de_sm" not in succeed()
    monkeypatch.setattr(about, "__uri__", server.url("/spacy-elmo"))
    assert "de_sm" in succeed()
    with pytest.raises(WeightsNotFoundError, match="spacy elmo download de_sm"):
        find_weights("de_sm")
    weights = write_weights(tmp_path / "mine")
    result = CliRunner().invoke(app, [
        "package", str(weights), str(tmp_path), "--name", "de_sm", "--version", "0.1.0",
        "--build", "none", "--lang", "de",
    ])  # fmt: skip
    assert result.exit_code == 0, result.output
    module = tmp_path / "spacy-elmo-de-sm-0.1.0" / "spacy_elmo_de_sm"
    wheel = {f"{module.name}/{path.name}": path.read_bytes() for path in module.iterdir()}
    wheel["spacy_elmo_de_sm-0.1.0.dist-info/METADATA"] = b"Name: spacy-elmo-de-sm"
    name = "spacy_elmo_de_sm-0.1.0-py3-none-any.whl"
    server.serve(f"/spacy-elmo/releases/download/de_sm-0.1.0/{name}", whole(make_zip(wheel)))
    succeed("de_sm")
    assert find_weights("de_sm").card().meta["lang"] == "de"
    assert "__init__.py" not in visible(cache / "de_sm")


def test_published_zip(server, cache, monkeypatch, h5py) -> None:
    """As the NLPL repository has them; its own card is kept in ours, which has the language."""
    files = {"options.json": OPTIONS, "model.hdf5": HDF5, "meta.json": b'{"id": 1}', "x.py": b"1"}
    succeed(server.serve("/20/7.zip", whole(make_zip(files))), "--name", "german")
    assert visible(cache / "german") == ["meta.json", "model.hdf5", "options.json"]
    meta = find_weights("german").card().meta
    assert meta["published"] == {"id": 1} and meta["sources"][0]["url"].endswith("/20/7.zip")
    address = server.serve("/201.zip", whole(make_zip(files)))
    known = Published((address,), "de", "German")
    monkeypatch.setitem(PUBLISHED, "nlpl_201", known)
    succeed("nlpl_201")
    assert find_weights("nlpl_201").card().meta["lang"] == "de"
    assert "Already downloaded" in succeed("nlpl_201")


def test_another_address_under_the_same_name(server, cache, tmp_path) -> None:
    """Is not what is there; nor is another file."""
    content = make_zip({p.name: p.read_bytes() for p in write_weights(tmp_path / "m").iterdir()})
    first = server.serve("/a/model.zip", whole(content), whole(content))
    other = server.serve("/b/model.zip", whole(content))
    digest = hashlib.sha256(content).hexdigest()
    succeed(first)
    assert "Already downloaded" in succeed(first, "--sha256", digest)
    for arguments in ((other,), (first, "--sha256", "0" * 64)):
        error = fail(*arguments)
        assert f"'model' are there already, from {first} with SHA-256 {digest}" in error
    assert "Downloaded" in succeed(other, "--force")


def test_own_zip(server, cache, tmp_path) -> None:
    """A directory of our layout as a zip, in a folder; a name from the address, without h5py."""
    weights = write_weights(tmp_path / "mine")
    files = {f"mine/{path.name}": path.read_bytes() for path in weights.iterdir()}
    files |= {"mine/pages.txt.xz": b"pages", "mine/setup.py": b"1"}
    output = succeed(server.serve("/v1/mine.zip", whole(make_zip(files))) + "?version=/2")
    assert '"weights": "mine"' in output
    found = find_weights("mine")
    assert isinstance(found, NativeWeights) and found.where == str(cache / "mine")
    found.load()
    assert (cache / "mine" / "pages.txt.xz").read_bytes() == b"pages"  # of a text, for attribution
    assert not (cache / "mine" / "setup.py").exists()


@pytest.mark.parametrize("stall", [0, 3])
def test_broken_off(server, cache, stall, h5py) -> None:
    """Nothing half-written stays; what is whole is not fetched again."""
    urls = two_files(server, broken(HDF5, 1000, stall), whole(HDF5))
    error = fail(*urls)
    assert urls[1] in error and "connection broke off" in error
    assert visible(cache) == ["tiny.json"]
    with pytest.raises(WeightsNotFoundError):
        find_weights("tiny")
    server.requests.clear()
    succeed(*urls)
    assert server.requests == ["/a/tiny_weights.hdf5"]
    assert visible(cache) == ["tiny"]


def test_offline(server, cache, tmp_path) -> None:
    """One plain line: the address, and where to put the file, which is found there."""
    url = server.url("/a/mine.zip")
    server.server_close()
    error = fail(url)
    assert url in error and "cannot be reached" in error
    assert not re.search("urllib3|HTTPConnection|Errno|Max retries", error)
    [place] = re.findall(f"save {url} as '(.*?)'", error)
    weights = write_weights(tmp_path / "mine")
    Path(place).write_bytes(make_zip({p.name: p.read_bytes() for p in weights.iterdir()}))
    succeed(url)
    find_weights("mine").load()
    assert visible(cache) == ["mine"]


@pytest.mark.parametrize("code", [403, 404, 503])
def test_refused(server, cache, code, h5py) -> None:
    urls = two_files(server, status(code))
    error = fail(*urls)
    assert f"Cannot download {urls[1]}: {code}" in error
    assert visible(cache) == ["tiny.json"]


def test_redirects(server, cache, h5py) -> None:
    url = server.serve("/there.hdf5", whole(HDF5))
    succeed(*two_files(server, redirect(url)))


@pytest.mark.parametrize("target", ["ftp://example.org/x", "file:///etc/passwd"])
def test_redirect_to_another_protocol(server, cache, target) -> None:
    error = fail(server.serve("/x.zip", redirect(target)))
    assert "No connection adapters" in error
    assert visible(cache) == []


def test_redirect_in_circles(server, cache) -> None:
    assert "redirects" in fail(server.serve("/x.zip", redirect(server.url("/x.zip"))))


def test_checksum(server, cache, h5py) -> None:
    urls = two_files(server)
    right = [hashlib.sha256(content).hexdigest() for content in (OPTIONS, HDF5)]
    error = fail(*urls, "-s", right[0], "-s", right[0])
    assert urls[1] in error and right[0] in error and right[1] in error
    assert visible(cache) == ["tiny.json"]
    kept = only(cache, "tiny-*.json").read_bytes()
    assert kept == OPTIONS
    only(cache, "tiny-*.json").write_bytes(OPTIONS[:-1])  # it is replaced
    succeed(*urls, "-s", right[0].upper(), "-s", right[1])
    assert "2 files and 1 checksums" in fail(*urls, "-F", "-s", right[0])


def test_compressed_on_its_way(server, cache, h5py) -> None:
    succeed(*two_files(server, whole(gzip.compress(HDF5), Content_Encoding="gzip")))
    assert (cache / "tiny" / "model.hdf5").read_bytes() == HDF5


def test_a_page_instead_of_weights(server, cache, h5py) -> None:
    """As from a network that asks for a login: nothing gets a name, and --force fetches again."""
    page = whole(b"<html>Log in</html>")
    urls = two_files(server, page)
    error = fail(*urls)
    assert "Cannot read the HDF5 file tiny/model.hdf5" in error
    assert str(only(cache, "tiny-*.hdf5")) in error and "--force" in error
    assert visible(cache) == ["tiny.hdf5", "tiny.json"]
    server.serve("/a/tiny_weights.hdf5", whole(HDF5))
    fail(*urls)
    succeed(*urls, "--force")
    assert visible(cache) == ["tiny"]
    assert "is not a zip file" in fail(server.serve("/x.zip", page))


def test_a_finished_download_outlives_its_unpacking(server, cache, monkeypatch, h5py) -> None:
    """Without h5py the download is kept, and used when there is one."""
    url = server.serve("/7.zip", whole(make_zip({"options.json": OPTIONS, "model.hdf5": HDF5})))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "h5py", None)
        error = fail(url, "--name", "mine")
    kept = only(cache, "mine-*.zip")
    assert "pip install 'spacy-elmo[hdf5]'" in error and f"kept in '{kept}'" in error
    assert "mine/model.hdf5: HDF5 needs h5py" in error
    assert visible(cache) == ["mine.zip"]
    server.requests.clear()
    succeed(url, "--name", "mine")
    assert visible(cache) == ["mine"] and not server.requests


def test_a_kept_file_is_that_of_its_address(server, cache, h5py) -> None:
    """Another address whose file has the same name is fetched."""
    fail(server.serve("/a/mine.zip", whole(b"no zip")))
    content = make_zip({"options.json": OPTIONS, "model.hdf5": HDF5})
    succeed(server.serve("/b/mine.zip", whole(content)))
    assert find_weights("mine").card().meta["sources"][0]["url"] == server.url("/b/mine.zip")


@pytest.mark.parametrize("room", [1000, len(HDF5) + 500])
def test_full_disk(server, cache, room, h5py) -> None:
    """Where files may have no more bytes, as on a full disk: while fetching, while unpacking."""
    resource = pytest.importorskip("resource")
    content = make_zip({"options.json": OPTIONS, "model.hdf5": HDF5}, zipfile.ZIP_STORED)
    if room > 1000:  # the zip has room, what is in it has not
        padded = HDF5 + bytes(4 * len(HDF5))
        content = make_zip({"options.json": OPTIONS, "model.hdf5": padded}, zipfile.ZIP_DEFLATED)
        assert len(content) < room
    url = server.serve("/x.zip", whole(content))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        error = fail(url)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "File too large" in error and "/x-" in error
    assert visible(cache) == (["x.zip"] if room > 1000 else [])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"encoder.pkl": b"", "token_embedder.pkl": b""}, "ELMoForManyLangs"),
        ({"../options.json": OPTIONS, "model.hdf5": HDF5}, "leads out of it"),
        ({"readme.txt": b"hello"}, "has no config.json"),
        (
            {"a/options.json": OPTIONS, "b/options.json": OPTIONS},
            "has several config.json",
        ),
        ({"config.json": b"{}"}, "x/weights.safetensors: there is no such file"),
    ],
)
def test_zips_without_weights(server, cache, files, message) -> None:
    assert message in fail(server.serve("/x.zip", whole(make_zip(files))))
    assert visible(cache) == ["x.zip"]


def test_zip_bomb(server, cache, monkeypatch) -> None:
    monkeypatch.setattr("spacy_elmo.weights.zips.MAX_UNPACKED", 2**20)
    memory = BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", b"{}")
        archive.writestr("weights.safetensors", bytes(2**23))
    error = fail(server.serve("/x.zip", whole(memory.getvalue())))
    assert "would unpack to 8,388,608 bytes" in error
    assert visible(cache) == ["x.zip"]


def test_damaged_zip(server, cache, h5py) -> None:
    content = bytearray(make_zip({"options.json": OPTIONS, "model.hdf5": HDF5}))
    content[len(content) // 2] ^= 1
    error = fail(server.serve("/x.zip", whole(bytes(content))))
    assert "Cannot read the zip" in error and f"kept in '{only(cache, 'x-*.zip')}'" in error
    assert visible(cache) == ["x.zip"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["elmo_large"], "elmo_small"),
        (["en_sm", "other"], "Give one name"),
        (["http://x/options.json"], "two addresses"),
        (["http://x/a.hdf5", "http://x/b.hdf5"], "two addresses"),
        (["http://x/a.zip", "--name", "../a"], "--name"),
        (["http://x/%2e%2e%2fetc.zip"], "--name"),
        (["elmo_small", "--name", "a"], "--name"),
        (["http://x/en_sm.zip"], "embedded or installed weights of the name 'en_sm'"),
        (["ftp://x/a.zip"], "Give one name"),
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
    assert all(url in output for known in PUBLISHED.values() for url in known.urls)


def test_nothing_else_fetches(cache) -> None:
    """An address in a config is an error that names the command."""
    with pytest.raises(WeightsNotFoundError, match="spacy elmo download"):
        find_weights("https://example.org/mine.zip")
    with pytest.raises(WeightsNotFoundError, match="downloaded weights are"):
        find_weights("nothing")


def test_only_names_that_load_are_listed(cache) -> None:
    for name, files in {"a": ["options.json", "x.hdf5"], "b": ["options.json"], "c": []}.items():
        (cache / name).mkdir(parents=True)
        for file in files:
            (cache / name / file).write_bytes(GOLDEN.joinpath("options.json").read_bytes())
    write_weights(cache / "mine")
    assert json.loads(succeed("--json"))["downloaded"] == ["a", "mine"]
    with pytest.raises(WeightsNotFoundError) as error:
        find_weights("nothing")
    assert "['a', 'en_sm', 'mine']" in str(error.value)


def test_names_do_not_lead_out_of_the_cache(cache, tmp_path) -> None:
    cache.mkdir()
    write_weights(tmp_path / "outside")
    with pytest.raises(WeightsNotFoundError):
        find_weights("../outside")


@pytest.mark.slow
def test_a_kill_is_survived(server, cache, h5py) -> None:
    """SIGKILL while a file arrives; the same command begins it again."""
    urls = two_files(server, broken(HDF5, 2**15, stall=60), whole(HDF5))
    environment = {**os.environ, CACHE_VARIABLE: str(cache), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "spacy", "elmo", "download", *urls]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while "/a/tiny_weights.hdf5" not in server.requests and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert "tiny" not in visible(cache)
    succeed(*urls)
    assert (cache / "tiny" / "model.hdf5").read_bytes() == HDF5


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
