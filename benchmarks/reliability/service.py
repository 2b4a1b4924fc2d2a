"""The recipes' web service under load: are its answers right, does its memory stay flat?

    python benchmarks/reliability/service.py --clients 200 --seconds 60

Serves the code of docs/recipes.md with uvicorn, in one process, which computes one request at a
time in spaCy's `memory_zone`. Clients post texts all at once, with words that repeat and words
that are new. Fails unless every request is answered, with the vectors that a pipeline computes
alone, and unless the memory of the last third of the time is that of the middle third (+ 10 MB).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

import numpy as np
import spacy
import torch

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
KNOWN = ["the", "bank", "raised", "its", "rates", "and", "we", "sat", "on", "a", "river", "plant"]
TIMEOUT = 120  # seconds that a client waits
MAX_DIFFERENCE, MAX_GROWTH = 1e-5, 10  # of vectors; MB

Answers = list[tuple[list[str], list[list[float]]]]


def serve(folder: Path, listening: socket.socket) -> subprocess.Popen[bytes]:
    """Start the service of the recipes."""
    _, page = PAGE.read_text("utf-8").split("```python\n# service.py\n")
    (folder / "service.py").write_text(page.partition("```")[0], encoding="utf-8")
    number = listening.fileno()
    command = [sys.executable, "-m", "uvicorn", "service:app", "--log-level", "warning"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command += ["--app-dir", str(folder), "--fd", str(number)]
    return subprocess.Popen(command, pass_fds=[number], env=environment)


def resident(pid: int) -> float:
    """MB of memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def make_texts(rng: random.Random) -> list[str]:
    """Texts of words that repeat and words that are new."""
    words = lambda: [*rng.choices(KNOWN, k=8), f"w{rng.randrange(10**9)}"]  # noqa: E731
    return [" ".join(rng.sample(words(), 9)) + "." for _ in range(rng.randint(1, 3))]


def ask(
    port: int, n_clients: int, seconds: float, server: subprocess.Popen[bytes]
) -> tuple[Answers, list[str], list[float]]:
    """Texts and their answers, what went wrong, and the server's memory (MB) over the time."""
    answers: Answers = []
    failures: list[str] = []
    first = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    first.request("GET", "/openapi.json")
    first.getresponse().read()  # it has started
    first.close()
    started = time.monotonic()

    def client(number: int) -> None:
        rng = random.Random(number)
        connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        try:
            while time.monotonic() - started < seconds:
                texts = make_texts(rng)
                headers = {"Content-Type": "application/json"}
                connection.request("POST", "/vectors", json.dumps({"texts": texts}), headers)
                response = connection.getresponse()
                answer = response.read()
                assert response.status == 200, answer[:200]
                answers.append((texts, json.loads(answer)))
        except Exception as error:
            failures.append(f"client {number}: {type(error).__name__}: {error}")

    clients = [threading.Thread(target=client, args=(n,)) for n in range(n_clients)]
    for each in clients:
        each.start()
    memory = []
    while any(each.is_alive() for each in clients) and server.poll() is None:
        memory.append(resident(server.pid))
        time.sleep(min(1.0, seconds / 20))
    for each in clients:
        each.join()
    return answers, failures, memory


def largest_difference(answers: Answers) -> float:
    """From vectors computed alone; NaN if any is."""
    torch.set_num_threads(1)  # as the service
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    pairs = [pair for texts, vectors in answers for pair in zip(texts, vectors, strict=True)]
    alone = np.stack([nlp(text)._.elmo for text, _ in pairs])
    return float(np.abs(alone - [vector for _, vector in pairs]).max())


def find_faults(
    answers: Answers, failures: list[str], memory: list[float], difference: float
) -> list[str]:
    """What is wrong with a run of the service."""
    faults = failures[:5]
    if not answers:
        faults.append("no answer")
    if not difference <= MAX_DIFFERENCE:  # NaN is not
        faults.append(f"other vectors: they differ by {difference}")
    middle, last = thirds(memory)
    if not last <= middle + MAX_GROWTH:
        faults.append(f"memory grows: {middle:.0f} MB in the middle, {last:.0f} MB at the end")
    return faults


def thirds(memory: list[float]) -> tuple[float, float]:
    """The median of the middle third and of the last; the first is the warm-up."""
    n = len(memory) // 3
    return median(memory[n:-n] or memory), median(memory[-n:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0), backlog=1024) as listening,
    ):
        server = serve(Path(folder), listening)
        try:
            port = listening.getsockname()[1]
            answers, failures, memory = ask(port, args.clients, args.seconds, server)
        finally:
            server.kill()
            server.wait()
    middle, last = thirds(memory)
    print(
        f"{len(answers):,} requests of {args.clients} clients in {args.seconds:.0f} s; the "
        f"server's memory: {middle:.0f} MB in the middle third, {last:.0f} MB in the last",
        flush=True,
    )
    sample = random.Random(0).sample(answers, min(len(answers), 200))
    difference = largest_difference(sample) if sample else float("nan")
    print(
        f"largest difference from vectors computed alone: {difference:.1e}; "
        f"{len(failures)} failures"
    )
    if faults := find_faults(answers, failures, memory, difference):
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
