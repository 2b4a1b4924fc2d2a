"""Processes that inherit a used pool of threads."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest

FORK = """
import os, sys
import torch
torch.set_num_threads(4)
{prepare}
n_threads = torch.get_num_threads()
child = os.fork()
if child == 0:
    run()
    os._exit(0 if torch.get_num_threads() == 1 else 3)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print("child", code, "threads", n_threads, torch.get_num_threads())
"""
LAYER = """
import spacy
nlp = spacy.blank("en")
nlp.add_pipe("{factory}")
text = " ".join(f"word{{i}}" for i in range(1000))
def run():
    nlp(text)
"""
LANGUAGE_MODEL = """
from spacy_elmo import LanguageModel
lm = LanguageModel.load("en_sm")
def run():
    lm.next_words(["The", "bank"])
"""
USED = "run()"  # the parent has run the model
LOADED = "run(); nlp.remove_pipe('elmo'); nlp.add_pipe('elmo')"  # the child loads it


@pytest.mark.skipif(sys.platform != "linux", reason="forks a process that has threads")
@pytest.mark.parametrize(
    "prepare",
    [
        LAYER.format(factory="elmo") + USED,
        LAYER.format(factory="elmo") + LOADED,
        LAYER.format(factory="elmo_surprisal") + USED,
        LANGUAGE_MODEL + USED,
    ],
    ids=["component", "loaded-in-the-child", "surprisal", "language-model"],
)
def test_a_forked_process_does_not_wait_for_threads_of_its_parent(prepare: str) -> None:
    command = [sys.executable, "-c", FORK.format(prepare=prepare)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, errors = process.communicate(timeout=100)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the child too
    assert out == "child 0 threads 4 4\n", errors
