"""``elmo download`` from a server on this machine that breaks off, stalls, redirects, refuses."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import pytest
import srsly

from spacy_elmo.about import __version__
from spacy_elmo.weights.catalogue import CACHE_VARIABLE, PUBLISHED, addresses
from spacy_elmo.weights.find import WeightsNotFoundError, find_weights

from ..bilm.helpers import same_weights
from ..pipeline.helpers import make_nlp, write_weights
from ..weights.helpers import make_zip, read
from . import helpers

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


def succeed(*arguments: str) -> str:
    return helpers.succeed("download", *arguments)


def fail(*arguments: str) -> str:
    return helpers.fail("download", *arguments)


def two_files(server: Server, *answers: Answer) -> list[str]:
    """Addresses of golden_tiny, whose HDF5 file is answered so."""
    options = server.serve("/a/options.json", whole(OPTIONS))
    return [options, server.serve("/a/tiny_weights.hdf5", *(answers or (whole(HDF5),)))]


def packed(files: dict[str, bytes], prefix: str = "") -> bytes:
    return make_zip(BytesIO(), files, prefix).getvalue()


def visible(folder: Path) -> list[str]:
    """The weights in the cache folder, and files that wait there to be converted."""
    waiting = (file.name.partition("-")[2] for file in folder.glob(".downloads/*"))
    return sorted([*waiting, *(path.name for path in folder.glob("[!.]*"))])


def make_own(path: Path, prefix: str = "", **more: bytes) -> bytes:
    """A zip of weights in our format, and of more files."""
    files = write_weights(path / "mine").iterdir()
    return packed({file.name: file.read_bytes() for file in files} | more, prefix)


def test_two_files(server, cache) -> None:
    """Converted, with their sources on the card and a warm state where they need one."""
    output = succeed(*two_files(server))
    assert hashlib.sha256(HDF5).hexdigest() in output
    assert visible(cache) == ["tiny"]
    found = find_weights("tiny")
    assert same_weights(found.load(), read(GOLDEN))
    assert (found.load().warm_h is not None) == (found.config().initial_state == "warm")
    assert [source["sha256"] for source in found.card().meta["sources"]] == [
        hashlib.sha256(OPTIONS).hexdigest(), hashlib.sha256(HDF5).hexdigest()
    ]  # fmt: skip
    assert make_nlp("tiny")("A bank.").tensor.any()


def test_published_name(server, cache, monkeypatch) -> None:
    known = {"urls": two_files(server), "lang": "de", "text": "Texts"}
    monkeypatch.setitem(PUBLISHED, "elmo_small", known)
    with pytest.raises(WeightsNotFoundError, match="python -m spacy elmo download elmo_small"):
        find_weights("elmo_small")
    succeed("elmo_small")
    assert find_weights("elmo_small").card().meta["lang"] == "de"


def test_own_weights_from_the_release(server, cache, tmp_path, monkeypatch) -> None:
    """A zip of each folder of project/weights, of the release of this version."""
    monkeypatch.setattr("spacy_elmo.weights.catalogue.RELEASE", server.url("/v1"))
    folder = ROOT / "project" / "weights" / "pt_sm"
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    url = server.serve("/v1/pt_sm.zip", whole(packed(files, "pt_sm/")))
    assert url in succeed()
    assert '"weights": "pt_sm"' in succeed("pt_sm")
    found = find_weights("pt_sm")
    assert same_weights(found.load(), find_weights(folder).load())
    assert found.card().meta["sources"][1]["license"] == "texts public domain, markup CC BY 4.0"
    assert {"README.md", "LICENSE", "statistics.safetensors"} <= {
        file.name for file in (cache / "pt_sm").iterdir()
    }


def test_own_weights_before_a_release(cache, monkeypatch) -> None:
    monkeypatch.setattr("spacy_elmo.weights.catalogue.RELEASE", "")
    assert "In a clone of spacy-elmo, give its directory, project/weights/de_sm" in fail("de_sm")
    assert "project/weights/de_sm in a clone" in succeed()
    assert json.loads(succeed("--json"))["published"]["de_sm"]["urls"] == []
    assert not cache.exists()


def test_own_weights_in_the_table() -> None:
    """It has each folder of project/weights, with its language and size."""
    own = {name: each for name, each in PUBLISHED.items() if "urls" not in each}
    folders = {path.parent for path in ROOT.glob("project/weights/*/weights.safetensors")}
    assert set(own) == {folder.name for folder in folders}
    for folder in folders:
        known, size = own[folder.name], sum(f.stat().st_size for f in folder.iterdir())
        assert known["lang"] == find_weights(folder).card().meta["lang"]
        assert abs(known["megabytes"] - size / 1e6) <= 1


def test_the_release_workflow_attaches_own_weights(monkeypatch) -> None:
    """Under the names that `elmo download` asks for."""
    workflow = srsly.read_yaml(ROOT / ".github" / "workflows" / "release.yml")
    steps = workflow["jobs"]["weights"]["steps"]
    commands = "\n".join(step.get("run", "") for step in steps)
    assert 'for name in *_sm *_md; do zip -r "$name.zip" "$name"; done' in commands
    assert all(
        name.endswith(("_sm", "_md")) for name in PUBLISHED if not PUBLISHED[name].get("urls")
    )
    monkeypatch.setattr("spacy_elmo.weights.catalogue.RELEASE", f"https://x/v{__version__}")
    assert addresses("de_sm") == [f"https://x/v{__version__}/de_sm.zip"]


def test_published_zip(server, cache) -> None:
    """As the NLPL repository has them; its own card is kept in ours, which has the language."""
    files = {"options.json": OPTIONS, "model.hdf5": HDF5, "meta.json": b'{"id": 1}', "x.py": b"1"}
    succeed(server.serve("/20/7.zip", whole(packed(files))), "--name", "german")
    assert not {"x.py", "model.hdf5"} & {file.name for file in (cache / "german").iterdir()}
    meta = find_weights("german").card().meta
    assert meta["published"] == {"id": 1} and meta["sources"][0]["url"].endswith("/20/7.zip")


def test_another_address_under_the_same_name(server, cache, tmp_path) -> None:
    """Is not what is there; nor is another file."""
    content = make_own(tmp_path)
    first = server.serve("/a/model.zip", whole(content), whole(content))
    other = server.serve("/b/model.zip", whole(content))
    digest = hashlib.sha256(content).hexdigest()
    succeed(first)
    assert "Already downloaded" in succeed(first, "--sha256", digest)
    assert len(server.requests) == 1
    for arguments in ((other,), (first, "--sha256", "0" * 64)):
        error = fail(*arguments)
        assert f"'model' are there already, from {first} with SHA-256 {digest}" in error
    assert "Downloaded" in succeed(other, "--force")


def test_a_folder_that_holds_something_else(server, cache) -> None:
    """Is the user's own: only --force replaces it."""
    (cache / "tiny").mkdir(parents=True)
    (cache / "tiny" / "thesis.txt").touch()
    assert "'tiny' are there already, from elsewhere" in fail(*two_files(server))
    assert (cache / "tiny" / "thesis.txt").exists() and not server.requests
    succeed(*two_files(server), "--force")


def test_killed_while_what_was_there_is_replaced(server, cache) -> None:
    """The weights are found, and so are their checksums."""
    urls = two_files(server)
    succeed(*urls)
    (cache / "tiny").rename(cache / ".tiny.spacy-elmo-old")
    assert same_weights(find_weights("tiny").load(), read(GOLDEN))
    assert json.loads(succeed("--json"))["downloaded"] == ["tiny"]
    assert "Already downloaded" in succeed(*urls)
    server.serve("/a/tiny_weights.hdf5", whole(HDF5 + b"1"))
    assert "--sha256" in fail(*urls, "--force")
    two_files(server)
    succeed(*urls, "--force")
    assert [path.name for path in cache.glob("*tiny*")] == ["tiny"]


def test_another_file_at_the_same_address(server, cache) -> None:
    """The checksums of the first download are noted: another file must be wanted."""
    urls = two_files(server)
    succeed(*urls)
    other = BytesIO(HDF5)
    with h5py.File(other, "a") as file:
        file["char_embed"][0, 0] += 1
    content = other.getvalue()
    server.serve("/a/tiny_weights.hdf5", whole(content))
    digests = [hashlib.sha256(each).hexdigest() for each in (OPTIONS, content)]
    error = fail(*urls, "--force")
    assert urls[1] in error and digests[1] in error and "--sha256" in error
    assert same_weights(find_weights("tiny").load(), read(GOLDEN))
    succeed(*urls, "--force", "-s", digests[0], "-s", digests[1])
    assert not same_weights(find_weights("tiny").load(), read(GOLDEN))
    succeed(*urls, "--force")


def test_own_zip(server, cache, tmp_path) -> None:
    """A directory of our layout as a zip, in a folder; a name from the address, without h5py."""
    content = make_own(tmp_path, "mine/", **{"setup.py": b"1"})
    output = succeed(server.serve("/v1/mine.zip", whole(content)) + "?version=/2")
    assert '"weights": "mine"' in output
    find_weights("mine").load()
    assert not (cache / "mine" / "setup.py").exists()


@pytest.mark.parametrize("stall", [0, 3])
def test_broken_off(server, cache, stall) -> None:
    """Nothing half-written stays; what is whole is not fetched again."""
    urls = two_files(server, broken(HDF5, 1000, stall), whole(HDF5))
    error = fail(*urls)
    assert urls[1] in error and "broke off" in error
    assert visible(cache) == ["options.json"]
    server.requests.clear()
    succeed(*urls)
    assert server.requests == ["/a/tiny_weights.hdf5"]
    assert visible(cache) == ["tiny"]


def test_refused(server, cache) -> None:
    urls = two_files(server, lambda handler: handler.send(b"no", 404))
    assert f"Cannot download {urls[1]}: 404" in fail(*urls)
    assert visible(cache) == ["options.json"]


def test_offline(server, cache) -> None:
    """One plain line, with the address."""
    url = server.url("/a/mine.zip")
    server.server_close()
    error = fail(url)
    assert url in error and "no connection" in error and "elmo convert" in error
    assert not re.search("urllib3|HTTPConnection|Errno|Max retries", error)


def test_redirects(server, cache) -> None:
    url = server.serve("/there.hdf5", whole(HDF5))
    succeed(*two_files(server, redirect(url)))
    for target in ("ftp://example.org/x", "file:///etc/passwd", server.url("/x.zip")):
        fail(server.serve("/x.zip", redirect(target)))
        assert visible(cache) == ["tiny"]


def test_checksum(server, cache) -> None:
    urls = two_files(server)
    right = [hashlib.sha256(content).hexdigest() for content in (OPTIONS, HDF5)]
    error = fail(*urls, "-s", right[0], "-s", right[0])
    assert urls[1] in error and right[0] in error and right[1] in error
    assert visible(cache) == ["options.json"]
    [kept] = cache.rglob("*-options.json")
    kept.write_bytes(OPTIONS[:-1])  # it is replaced
    succeed(*urls, "-s", right[0].upper(), "-s", right[1])
    assert "2 files and 1 checksums" in fail(*urls, "-F", "-s", right[0])


def test_a_page_instead_of_weights(server, cache) -> None:
    """As from a network that asks for a login: nothing gets a name, and --force fetches again."""
    page = whole(b"<html>Log in</html>")
    urls = two_files(server, page)
    error = fail(*urls)
    assert "Cannot read the HDF5 file" in error and "--force" in error
    assert visible(cache) == ["options.json", "tiny_weights.hdf5"]
    server.serve("/a/tiny_weights.hdf5", whole(HDF5))
    fail(*urls)
    succeed(*urls, "--force")
    assert visible(cache) == ["tiny"]
    assert "not a zip file" in fail(server.serve("/x.zip", page))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["elmo_large"], "elmo_small"),
        (["en_sm", "other"], "Give one name"),
        (["http://x/options.json"], "two addresses"),
        (["http://x/a.zip", "--name", "../a"], "--name"),
        (["http://x/..%2f..%2f.zip"], "--name"),
        (["http://x/en_sm.zip"], "under the name 'en_sm'"),
    ],
)
def test_arguments(cache, arguments, message) -> None:
    assert message in fail(*arguments)
    assert not cache.exists()


def test_list(cache, server, tmp_path) -> None:
    succeed(server.serve("/mine.zip", whole(make_own(tmp_path))))
    data = json.loads(succeed("--json"))
    assert data["cache"] == str(cache) and data["downloaded"] == ["mine"]
    assert set(data["published"]) == set(PUBLISHED)
    output = succeed()
    assert all(name in output for name in (*PUBLISHED, "mine"))
    assert all(url in output for name in PUBLISHED for url in addresses(name))


def test_addresses_and_names_that_lead_out_of_the_cache(cache, tmp_path) -> None:
    """Nothing else fetches: an address in a config is an error that names the command."""
    cache.mkdir()
    write_weights(tmp_path / "outside")
    with pytest.raises(WeightsNotFoundError, match="spacy elmo download"):
        find_weights("https://example.org/mine.zip")
    with pytest.raises(WeightsNotFoundError, match="no such directory"):
        find_weights("../outside")
