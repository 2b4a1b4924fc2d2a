"""The commands that write files, as small jobs that run in forked processes under a fault.

For `killed.py` and `full_disk.py`. A job writes into a room of its own. Its result is compared with
that of an undisturbed run: every name, and the content of every file that does not depend on time.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import random
import resource
import shutil
import signal
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import spacy
import torch

from spacy_elmo import save_pipeline
from spacy_elmo.bilm.base_weights import Card
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.find_weights import load_bilm
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.own_weights import save_bilm
from spacy_elmo.bilm.published.weights import write_published
from spacy_elmo.cli import app
from spacy_elmo.cli.options import report_errors
from spacy_elmo.lm.head import load_head, save_head
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.pretraining.run.checkpoint import CHECKPOINT, read_progress

MODEL = BiLMConfig(filters=((1, 8), (2, 16)), projection_dim=16, dim=32, n_layers=2, char_dim=4)
CONFIG = """
[paths]
train = "{text}"
dev = "{text}"

[model]
filters = [[1, 8], [2, 16]]
char_dim = 4
projection_dim = 16
dim = 32
n_layers = 2

[softmax]
kind = "full"

[vocab]
min_count = 1

[training]
batch_words = 200
max_steps = 12
warmup_steps = 2
decay_steps = 5
dropout = 0.2
eval_every = 5
eval_words = 200
log_every = 3
checkpoint_seconds = 0
keep_checkpoints = 2
"""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
OPERATIONS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.truncate"}
TIMED = {"log.jsonl", CHECKPOINT}  # they contain times


@dataclass
class Job:
    """A command on small data.

    Attributes:
        run: does it, in a room.
        repeat: does it again after a fault.
        names: of the files and directories in the room that must be whole whenever they exist.
        before: puts into the room what the job replaces.
        check: raises an error if one of the names is not whole; None compares it with the result.
        resumable: a failure may leave more than the names, to continue from.
    """

    run: Callable[[Path], None]
    repeat: Callable[[Path], None]
    names: tuple[str, ...]
    before: Callable[[Path], None] = lambda room: None
    check: Callable[[Path], None] | None = None
    resumable: bool = False


def elmo(*arguments: object) -> None:
    """A command of `python -m spacy elmo`."""
    app([str(each) for each in arguments], standalone_mode=False)


def make_jobs(sound: Path) -> dict[str, Job]:
    """All jobs; what they read is written to a folder."""
    torch.manual_seed(0)
    rng = random.Random(0)
    own, published = sound / "own", sound / "published"
    own.mkdir(parents=True)
    published.mkdir()
    words = [f"word{i}" for i in range(200)]
    lines = [" ".join(rng.choices(words, k=rng.randint(2, 30))) for _ in range(300)]
    text, raw, config = sound / "text.txt", sound / "raw.txt", sound / "config.cfg"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    raw.write_text(" .\n".join(lines) + " .\n", encoding="utf-8")
    config.write_text(CONFIG.format(text=text), encoding="utf-8")
    model, vocab = BiLM(MODEL).eval(), Vocabulary([*SPECIALS, *words])
    head = SoftmaxHead(len(vocab), MODEL.projection_dim)
    torch.nn.init.normal_(head.weight)
    save_bilm(model, own, Card({"name": "small", "lang": "en"}, {"LICENSE": "CC0\n"}))
    save_head(head, vocab, own)
    write_published(model, published, head, vocab.words)
    packed = sound / "weights.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for each in published.iterdir():
            file.write(each, each.name)

    def save(room: Path) -> None:
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"model": {"weights": str(own)}})
        nlp.add_pipe("elmo_surprisal", config={"weights": str(own)})
        with report_errors("Cannot save"):
            save_pipeline(nlp, room / "nlp")

    def encode(room: Path, *more: str) -> None:
        elmo("encode", text, room / "out.npy", "-w", own, "--tokenized", "--quiet", *more)

    def pretrain(room: Path, *more: str) -> None:
        elmo("pretrain", config, room / "run", "--quiet", *more)

    def convert(room: Path, to: str, *more: str) -> None:
        source = packed if to == "own" else own
        elmo("convert", source, room / "weights", "--to", to, *more)

    def package(room: Path, *more: str) -> None:
        elmo("package", own, room, "--name", "small", "--version", "1.0.0", *more)

    return {
        "convert": Job(
            lambda room: convert(room, "published"),
            lambda room: convert(room, "published", "--force"),
            ("weights",),
        ),
        "convert-force": Job(
            lambda room: convert(room, "own", "--force"),
            lambda room: convert(room, "own", "--force"),
            ("weights",),
            before=lambda room: convert(room, "own", "--half"),
        ),
        "encode": Job(
            encode,
            lambda room: encode(room, "--resume"),
            ("out.npy", "out.tokens.jsonl", "out.offsets.npy"),
            resumable=True,
        ),
        "pretrain": Job(
            pretrain,
            lambda room: pretrain(room, *["--resume"] * (room / "run").exists()),
            (),
            check=check_run,
            resumable=True,
        ),
        "package": Job(package, lambda room: package(room, "--force"), ("spacy-elmo-small-1.0.0",)),
        "tokenize": Job(
            lambda room: elmo("tokenize", raw, room / "shards", "-w", "900", "--quiet"),
            lambda room: (
                None
                if (room / "shards").exists()
                else elmo("tokenize", raw, room / "shards", "-w", "900", "--quiet")
            ),
            ("shards",),
        ),
        "save_pipeline": Job(save, save, ("nlp",)),
    }


def check_run(room: Path) -> None:
    """Fails on half a model, checkpoint or file of settings."""
    run = room / "run"
    for name in ("model-best", "model-last"):
        if (run / name).exists():
            load_bilm(run / name), load_head(run / name)
    for file in run.glob("checkpoint*"):
        read_progress(file)


def digest(room: Path) -> dict[str, str]:
    """All files in a room; of those that contain times only the names."""
    return {
        str(file.relative_to(room)): _digest_file(file)
        for file in room.rglob("*")
        if file.is_file()
    }


def _digest_file(file: Path) -> str:
    if file.name in TIMED or file.name.startswith("checkpoint-"):
        return ""
    data = file.read_bytes()
    with contextlib.suppress(EOFError, OSError, tarfile.TarError):  # half of one stays as it is
        if file.suffix == ".gz":  # its header has a time
            data = gzip.decompress(data)
        if file.name.endswith(".tar.gz"):
            with tarfile.open(fileobj=io.BytesIO(data)) as members:
                data = repr(sorted((m.name, m.size) for m in members)).encode()
    return hashlib.md5(data).hexdigest()


class Trial:
    """A job in a room of its own, before, under and after a fault.

    Attributes:
        job: the job.
        old: what was there before.
        new: what an undisturbed run leaves.
        n_operations: that an undisturbed run makes in the file system.
        seconds: that it takes.
        n_bytes: of the largest file.
    """

    def __init__(self, job: Job, folder: Path):
        self.job, self.folder = job, folder
        self.room, self._temporary = folder / "room", folder / "temporary"
        self.prepare()
        self.old = digest(self.room)
        started = time.monotonic()
        counter = folder / "operations"
        assert self.fork(job.run, lambda: count_operations(counter)) == 0, self.output()
        self.seconds = time.monotonic() - started
        self.new, self.n_operations = digest(self.room), counter.stat().st_size
        self.n_bytes = max(file.stat().st_size for file in self.room.rglob("*") if file.is_file())

    def prepare(self) -> None:
        """A new room, with what the job replaces."""
        for folder in (self.room, self._temporary):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        assert self.fork(self.job.before) == 0, self.output()

    def fork(
        self,
        run: Callable[[Path], None],
        fault: Callable[[], None] = lambda: None,
        kill_after: float | None = None,
    ) -> int:
        """Run in a forked process; its exit code, negative for the signal that ended it."""
        child = os.fork()
        if child == 0:
            code = 1
            os.environ["TMPDIR"] = str(self._temporary)
            tempfile.tempdir = None
            output = os.open(self.folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1), os.dup2(output, 2)
            try:
                fault()
                run(self.room)
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
            except BaseException:
                import traceback

                traceback.print_exc()
                code = 3
            finally:
                with contextlib.suppress(BaseException):
                    sys.stdout.flush(), sys.stderr.flush()
                os._exit(code)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(child, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def output(self) -> str:
        """What the last process has printed."""
        return (self.folder / "output").read_text(errors="replace")

    def fault_in_result(self) -> str | None:
        """What is half-written under its final name, if anything is."""
        now = digest(self.room)
        for name in self.job.names:
            part, old, new = (
                {key: value for key, value in files.items() if key.split("/")[0] == name}
                for files in (now, self.old, self.new)
            )
            if part not in (old, new) or (not part and (self.room / name).is_dir()):
                return f"{name} is neither the old one nor the new one: {sorted(part)}"
        if self.job.check is not None:
            try:
                self.job.check(self.room)
            except Exception as error:
                return f"{type(error).__name__}: {error}"
        return None

    def fault_after_repeat(self) -> str | None:
        """Repeat the job undisturbed; what is not as if there had been no fault."""
        if self.fork(self.job.repeat) != 0:
            return f"it cannot be repeated: {self.output()[-500:]}"
        now = digest(self.room)
        if now != self.new:
            different = sorted(n for n in {*now, *self.new} if now.get(n) != self.new.get(n))
            return f"after the repeat, these differ: {different}"
        if empty := [d for d in self.room.rglob("*") if d.is_dir() and not any(d.iterdir())]:
            return f"empty folders are left: {empty}"
        return None

    def parts(self) -> list[str]:
        """Files in the room that no finished job leaves."""
        return sorted({*digest(self.room)} - {*self.old, *self.new})

    def leftovers(self) -> list[str]:
        """Temporary files that the processes so far have left outside of the room.

        PyTorch has a cache of compiled kernels there, which it reuses.
        """
        names = [file.name for file in self._temporary.iterdir()]
        return [name for name in names if not name.startswith("torchinductor")]


def count_operations(counter: Path) -> None:
    """Note each operation in the file system as a byte in a file."""
    descriptor = os.open(counter, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    on_operation(lambda n, event: os.write(descriptor, b"."))


def on_operation(act: Callable[[int, str], object]) -> None:
    """Call a function before each operation that changes the file system, with its number and
    kind."""
    count = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
        if (is_write and arguments[0] != os.devnull) or event in OPERATIONS:
            count += 1
            act(count, event)

    sys.addaudithook(hook)


def limit_file_size(n_bytes: int, action: signal.Handlers) -> None:
    """No file grows past a size: with SIG_DFL the process dies in the middle of the write."""
    signal.signal(signal.SIGXFSZ, action)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
