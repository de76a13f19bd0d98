"""The contract on every order, the arguments that all orders share, and threads, forks and interrupts."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contracts import CASES, FACTS, MakeOrder, OrderContract, as_lists, facts

import replenish
from replenish.orders import ORDERS, build_order


class TestEveryOrder(OrderContract):
    @pytest.fixture(params=list(CASES))
    def make(self, request: pytest.FixtureRequest) -> MakeOrder:
        return CASES[request.param]


@pytest.mark.parametrize("name", list(ORDERS))
def test_bad_sizes_are_named(name: str) -> None:
    for size in ("num_samples", "batch_size"):
        with pytest.raises(ValueError, match=f"{size} should be at least 1, but got 0"):
            build_order(name, **{"num_samples": 97, "batch_size": 10, size: 0}, **facts(name))
        with pytest.raises(TypeError, match=f"{size} should be an int, but got 64.0"):
            build_order(name, **{"num_samples": 97, "batch_size": 10, size: 64.0}, **facts(name))


@pytest.mark.parametrize("name", list(ORDERS))
def test_numpy_integers_are_integers(name: str) -> None:
    order = build_order(name, np.int64(97), np.int32(10), seed=np.uint8(3), **facts(name))
    assert type(order.num_samples) is int
    assert order == build_order(name, 97, 10, seed=3, **facts(name))


@pytest.mark.parametrize("name", list(ORDERS))
def test_options_are_keywords(name: str) -> None:
    with pytest.raises(TypeError, match="positional"):
        ORDERS[name].order_class(97, 10, 0, **facts(name))


@pytest.mark.parametrize("name", list(CASES))
def test_threads_may_share_an_order(name: str) -> None:
    order = CASES[name]()
    expected = as_lists(order.batches(0, 60))
    wrong: list[int] = []

    def read(steps: list[int]) -> None:
        wrong.extend(step for step in steps if order.batch(step).tolist() != expected[step])

    threads = [
        threading.Thread(target=read, args=(np.random.default_rng(k).permutation(60).tolist(),)) for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", ["srs", "reshuffling"])
def test_a_fork_while_another_thread_draws_does_not_hang_the_child(name: str) -> None:
    order = CASES[name]()
    expected = order.batch(7).tolist()
    with order._lock.lock:  # as if another thread held it
        child = os.fork()
        if child == 0:
            signal.alarm(120)  # ends a child that hangs, with an exit status other than 0
            os._exit(0 if order.batch(7).tolist() == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert order.batch(7).tolist() == expected


class InterruptedHereError(Exception):
    """Raised at the place of a simulated interrupt."""


def interrupt_at(count: int) -> Callable[..., Any]:
    """Return a trace function that raises at operation number `count` within the code of the orders."""
    left = count

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal left
        if "orders" not in Path(frame.f_code.co_filename).parts:
            return None
        frame.f_trace_opcodes = True
        left -= event == "opcode"
        if left < 0:
            raise InterruptedHereError
        return trace

    return trace


@pytest.mark.parametrize("name", ["srs", "reshuffling", "flip-flop", "independent"])
def test_an_interrupt_anywhere_leaves_a_usable_cursor(name: str) -> None:
    """Interrupt at every single operation: a cursor must never mix the state of two places."""
    order = build_order(name, 12, 12)  # blocks of 8 steps: few operations
    expected = as_lists(order.batches(0, 30))
    tracer = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 asks when tracing begins whether any frame wants operations
    for count, asked in ((count, asked) for count in itertools.count() for asked in (8, 3)):  # the same block, or back
        cursor = order.cursor()
        cursor.rows_at(3)
        try:
            sys.settrace(interrupt_at(count))
            cursor.rows_at(10)
        except InterruptedHereError:
            pass
        else:
            break  # all operations were tried
        finally:
            sys.settrace(tracer)
        for step in (asked, 20):
            first, rows = cursor.rows_at(step)
            assert rows[step - first].tolist() == expected[step], f"interrupted at operation {count}, asked for {step}"
    assert count > 30


class TestTheList:
    def test_facts_that_orders_require(self) -> None:
        assert {name: entry.needs for name, entry in ORDERS.items() if entry.needs} == {
            "block-shuffle": ("shard_size",),
            "jitter": ("shard_size",),
            "stratified": ("labels",),
            "weighted": ("weights",),
            "length-grouped": ("lengths",),
        }
        assert set(FACTS) == {need for entry in ORDERS.values() for need in entry.needs}
        with pytest.raises(ValueError, match="labels should be given for the order 'stratified', which needs"):
            build_order("stratified", 10, 4)

    @pytest.mark.parametrize("name", list(ORDERS))
    def test_every_order_is_public_and_explained(self, name: str) -> None:
        entry = ORDERS[name]
        assert getattr(replenish, entry.order_class.__name__) is entry.order_class
        assert entry.label
        assert entry.description

    def test_an_unknown_name(self) -> None:
        with pytest.raises(ValueError, match="order should be one of srs, reshuffling, .*, but got 'shuffled'"):
            build_order("shuffled", 10, 4)

    @pytest.mark.parametrize(
        ("name", "option", "has"),
        [
            ("reshuffling", "pool_size", "only drop_last, computed"),
            ("replacement", "drop_last", "none"),
            ("srs", "drop_last", "only pool_size, sequence"),
        ],
    )
    def test_an_option_of_another_order(self, name: str, option: str, has: str) -> None:
        message = f"{option} should not be given for the order '{name}', which has {has} .*, but got {option}=3"
        with pytest.raises(ValueError, match=message):
            build_order(name, 10, 4, **{option: 3})


# ---- In separate processes ----


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

# A child hangs if it waits for a lock that another thread held at the fork. Then the alarm ends it with a signal.
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


def test_threads_may_not_draw_from_one_iterator_at_once() -> None:
    check(FOUR_THREADS)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_while_a_thread_works_does_not_hang_the_child() -> None:
    check(FORKS)


def test_a_far_batch_at_the_exit_of_the_interpreter() -> None:
    check(AT_EXIT)
