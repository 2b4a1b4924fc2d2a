"""A web service under load: are vectors as alone, does memory stay flat, does anybody wait forever?

    python benchmarks/service.py --clients 200 --seconds 60

A server of the standard library with a thread for each request computes ELMo's vectors, as people
write it: one pipeline, loaded before the first request, and, with `--zones`, a lock and spaCy's
`memory_zone` around each request, as its documentation says. Clients post texts all at once, and
compare what they get with vectors computed alone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc

KNOWN = ["the", "bank", "raised", "its", "rates", "and", "we", "sat", "on", "a", "river", "plant"]
TIMEOUT = 120  # seconds that a client waits


def load() -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    return nlp


def vector(doc: Doc) -> np.ndarray:
    """The mean of ELMo's vectors; those behind `doc.vector` are rounded to half precision."""
    return doc.tensor.mean(axis=0)


def serve(zones: bool) -> None:
    """Answer requests, and print the port first."""
    torch.set_num_threads(1)
    nlp, lock = load(), threading.Lock()
    nlp("This text loads the weights before the first request.")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            # Zones are of the whole vocabulary, so only one request may be in one.
            with lock if zones else contextlib.nullcontext():
                with nlp.memory_zone() if zones else contextlib.nullcontext():
                    found = [vector(doc).tolist() for doc in nlp.pipe(texts)]
            data = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads, request_queue_size = True, 1024

    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


def resident(pid: int) -> float:
    """MB of memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def make_texts(rng: random.Random) -> list[str]:
    """Texts of words that repeat and words that are new."""
    words = lambda: [*rng.choices(KNOWN, k=8), f"w{rng.randrange(10**9)}"]  # noqa: E731
    return [" ".join(rng.sample(words(), 9)) + "." for _ in range(rng.randint(1, 3))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--zones", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(args.zones)
    command = [sys.executable, __file__, "--serve", *["--zones"] * args.zones]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        answers, failures = ask(port, args.clients, args.seconds, server.pid)
    finally:
        server.kill()
        server.wait()
    nlp = load()
    sample = random.Random(0).sample(answers, min(len(answers), 500))
    worst = max(
        float(np.abs(vector(nlp(text)) - found).max())
        for texts, vectors in sample
        for text, found in zip(texts, vectors, strict=True)
    )
    print(f"largest difference from vectors computed alone: {worst:.1e}; {len(failures)} failures")
    if failures or worst > 1e-5:
        sys.exit("\n".join(failures[:5]) or "other vectors")


def ask(
    port: int, n_clients: int, seconds: float, pid: int
) -> tuple[list[tuple[list[str], list[list[float]]]], list[str]]:
    """Texts and their answers, and what went wrong."""
    answers: list[tuple[list[str], list[list[float]]]] = []
    failures: list[str] = []
    started = time.monotonic()

    def client(number: int) -> None:
        rng = random.Random(number)
        connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        try:
            while time.monotonic() - started < seconds:
                texts = make_texts(rng)
                connection.request("POST", "/", json.dumps(texts))
                answers.append((texts, json.loads(connection.getresponse().read())))
        except Exception as error:
            failures.append(f"client {number}: {type(error).__name__}: {error}")

    clients = [threading.Thread(target=client, args=(n,)) for n in range(n_clients)]
    for each in clients:
        each.start()
    memory = []
    while any(each.is_alive() for each in clients):
        time.sleep(min(1.0, seconds / 20))
        memory.append(resident(pid))
    took = time.monotonic() - started
    middle, last = memory[len(memory) // 2], memory[-1]
    print(
        f"{len(answers):,} requests of {n_clients} clients in {took:.0f} s; the server's memory: "
        f"{middle:.0f} MB at half time, {last:.0f} MB at the end"
    )
    return answers, failures


if __name__ == "__main__":
    main()
