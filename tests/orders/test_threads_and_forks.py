"""Threads that share an iterator, forks while another thread works, and draws while the interpreter exits."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FOUR_THREADS = """
import threading
from replenish import SequencedReplacement

batches, refusals, drawn = SequencedReplacement(50_000, 64).batches(), [], []

def draw():
    try:
        for _ in range(20_000):
            drawn.append(len(next(batches)))
    except ValueError as error:
        refusals.append(str(error))

threads = [threading.Thread(target=draw) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert set(refusals) <= {"generator already executing"}, refusals
print(len(drawn) > 0)
"""

# A child hangs if it waits for a lock that another thread held at the fork; the alarm then ends it with a signal.
FORKS = """
import os, signal, sys, threading, warnings
import numpy as np
from replenish import SequencedReplacement, WeightedDraws

warnings.simplefilter("ignore")
ended = threading.Event()
array = np.arange(2 * 10**6)
other = WeightedDraws(3, 2, weights=[1, 2, 3])

def work():
    while not ended.is_set():
        SequencedReplacement(2 * 10**6, 9, sequence=array).config()

thread = threading.Thread(target=work)
thread.start()
hung = 0
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        other.config(), other.batch(0)
        os._exit(0)
    hung += os.waitpid(child, 0)[1] != 0
    if hung:
        break
ended.set()
thread.join()
print(hung == 0)
"""

AT_EXIT = """
import atexit
from replenish import SequencedReplacement

order = SequencedReplacement(2**20, 1024, pool_size=2**20)
expected = SequencedReplacement(2**20, 1024).batch(10**6).tolist()
atexit.register(lambda: print(order.batch(10**6).tolist() == expected))
"""


def check(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stdout + done.stderr


def test_threads_that_share_an_iterator_are_refused() -> None:
    check(FOUR_THREADS)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_while_a_thread_works_does_not_hang_the_child() -> None:
    check(FORKS)


def test_a_far_batch_while_the_interpreter_exits() -> None:
    check(AT_EXIT)
