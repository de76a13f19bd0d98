"""One pool per machine: real processes read one draw, the same stream, and no death makes anyone hang."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest
from contracts import as_lists
from integration_support import GOLDEN_FIRST, GOLDEN_MILLIONTH, MILLION, environment, golden_order, joined, stream

from replenish import Order, RandomReshuffling, SequencedReplacement
from replenish.integrations.node import NodeOrder, serve
from replenish.torch import OrderBatchSampler

READER = """
import json, sys, time
from replenish import SequencedReplacement
from replenish.integrations.node import NodeOrder
from replenish.torch import OrderBatchSampler
path, rank, world, start, stop, pause = sys.argv[1], *map(float, sys.argv[2:])
order = NodeOrder(SequencedReplacement(1000, 40, seed=3), path)
sampler = OrderBatchSampler(order, num_replicas=int(world), rank=int(rank))
sampler.seek(int(start))
step = int(start)
while step < stop:
    for batch in sampler:
        print(json.dumps(batch), flush=True)
        time.sleep(pause)
        step += 1
        if step >= stop:
            break
"""


def order() -> SequencedReplacement:
    return SequencedReplacement(1000, 40, seed=3)


def reader(path: Path, rank: int, world: int, start: int, stop: int, pause: float = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", READER, path, rank, world, start, stop, pause]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment())  # fmt: skip


def test_is_the_order_it_serves(tmp_path: Path) -> None:
    with serve(order(), tmp_path / "s"):
        shared = NodeOrder(order(), tmp_path / "s")
        assert isinstance(shared, Order)
        assert as_lists(shared.batches(0, 60)) == stream(0, 60)
        for step in (59, 3, 10**6, 10**6 - 1, 0):
            assert shared.batch(step).tolist() == order().batch(step).tolist()
        copy = pickle.loads(pickle.dumps(shared))
        assert copy.batch(7).tolist() == order().batch(7).tolist()
        assert shared.config() == order().config()
        assert (shared.num_samples, shared.batch_size, shared.steps_per_epoch) == (1000, 40, 25)
        assert shared.effective_epoch(50) == 2.0
        sampler = OrderBatchSampler(shared)
        sampler.load_state_dict(OrderBatchSampler(order()).state_dict(step=31))
        assert list(islice(sampler, 19)) == stream(31, 50)
    assert not (tmp_path / "s").exists()


def test_short_batches(tmp_path: Path) -> None:
    with serve(RandomReshuffling(10, 4), tmp_path / "s"):
        shared = NodeOrder(RandomReshuffling(10, 4), tmp_path / "s")
        assert list(OrderBatchSampler(shared)) == as_lists(RandomReshuffling(10, 4).batches(0, 3))
        assert shared.last_batch_size == 2


def test_golden_vector(tmp_path: Path) -> None:
    with serve(golden_order(), tmp_path / "s"):
        sampler = OrderBatchSampler(NodeOrder(golden_order(), tmp_path / "s"))
        assert list(sampler) == GOLDEN_FIRST
        sampler.seek(MILLION)
        assert next(iter(sampler)) == GOLDEN_MILLIONTH


@pytest.mark.slow
def test_processes_of_unequal_speed(tmp_path: Path) -> None:
    with serve(order(), tmp_path / "s"):
        readers = [reader(tmp_path / "s", rank, 4, 20, 180, pause=0.002 * rank) for rank in range(4)]
        shares = [list(map(json.loads, each.communicate(timeout=300)[0].splitlines())) for each in readers]
    assert joined(shares) == stream(20, 180)


@pytest.mark.slow
def test_a_reader_that_dies_disturbs_nobody(tmp_path: Path) -> None:
    with serve(order(), tmp_path / "s"):
        victim, other = (reader(tmp_path / "s", rank, 2, 0, 400, pause=0.005) for rank in range(2))
        assert victim.stdout is not None
        assert victim.stdout.readline()
        victim.kill()
        victim.communicate()
        seen = list(map(json.loads, other.communicate(timeout=300)[0].splitlines()))
    assert seen == [batch[20:] for batch in stream(0, 400)]


@pytest.mark.slow
def test_when_the_drawing_process_dies_readers_are_told(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", "import sys, time\nfrom replenish import SequencedReplacement\n"
         "from replenish.integrations.node import serve\n"
         "with serve(SequencedReplacement(1000, 40, seed=3), sys.argv[1]): print('up', flush=True); time.sleep(300)",
         str(tmp_path / "s")], stdout=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"up\n"
    child = reader(tmp_path / "s", 0, 1, 0, 10**6, pause=0.005)
    assert child.stdout is not None
    assert child.stdout.readline()
    parent.send_signal(signal.SIGKILL)  # not even its `finally` runs
    parent.communicate()
    _, message = child.communicate(timeout=300)
    assert child.returncode == 1
    assert "has ended; start the run again" in message


def test_nobody_draws(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError, match="nobody draws at .* after 0.2 seconds"):
        NodeOrder(order(), tmp_path / "s", timeout=0.2).batch(0)


def test_the_drawing_process_cannot_start(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="the drawing process ended with code 1"),
        serve(order(), tmp_path / ("long" * 40)),  # too long for a socket
    ):
        pass


def test_another_order_is_refused(tmp_path: Path) -> None:
    with serve(order(), tmp_path / "s"):
        shared = NodeOrder(SequencedReplacement(1000, 40, seed=4), tmp_path / "s")
        with pytest.raises(ValueError, match=r"order should be the one that is drawn.*seed is 3 there but 4 here"):
            shared.batch(0)


def test_another_job_on_the_path_is_refused(tmp_path: Path) -> None:
    with (
        serve(order(), tmp_path / "s"),
        pytest.raises(ValueError, match="path should be of this job alone, but another one draws"),
        serve(order(), tmp_path / "s"),
    ):
        pass


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    os.chmod(tmp_path / "open", 0o777)
    with (
        pytest.raises(ValueError, match="path should be in a folder that only this user can write to.*mode 777"),
        serve(order(), tmp_path / "open" / "s"),
    ):
        pass


def test_threads_share_one(tmp_path: Path) -> None:
    expected = stream(0, 400)
    with serve(order(), tmp_path / "s"), ThreadPoolExecutor(4) as pool:
        shared = NodeOrder(order(), tmp_path / "s")
        assert [batch.tolist() for batch in pool.map(shared.batch, range(400))] == expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork beside threads is what is tested
def test_a_fork_after_use(tmp_path: Path) -> None:
    with serve(order(), tmp_path / "s"):
        shared = NodeOrder(order(), tmp_path / "s")
        shared.batch(0)
        context = multiprocessing.get_context("fork")
        with context.Pool(2) as pool:
            forked = pool.map_async(shared.batch, range(50))
            assert [shared.batch(step).tolist() for step in range(50, 100)] == stream(50, 100)
            assert [batch.tolist() for batch in forked.get(timeout=300)] == stream(0, 50)


def drawing_at(path: Path) -> int:
    """Return the number of the process that draws there."""
    return next(
        int(process.name)
        for process in Path("/proc").iterdir()
        if process.name.isdigit() and str(path).encode() in (process / "cmdline").read_bytes()
    )


@pytest.mark.slow
def test_a_stopped_process_is_found_out(tmp_path: Path) -> None:
    """By a reader that has read before, by a new one, and when the context ends."""
    with serve(order(), tmp_path / "s"):
        shared = NodeOrder(order(), tmp_path / "s")
        shared.batch(0)
        shared._timeout = 3  # from now on: until here a busy machine may take its time
        drawing = drawing_at(tmp_path / "s")
        os.kill(drawing, signal.SIGSTOP)
        try:
            for reader in (shared, NodeOrder(order(), tmp_path / "s", timeout=3)):
                with pytest.raises(ConnectionError, match="gave no sign of life for 3 seconds"):
                    reader.batch(500)
        finally:
            os.kill(drawing, signal.SIGCONT)
        shared._timeout = 60
        assert shared.batch(500).tolist() == order().batch(500).tolist()
        os.kill(drawing, signal.SIGSTOP)
    assert not Path("/proc", str(drawing)).exists()


def test_a_reader_that_leaves_before_it_is_answered_disturbs_nobody(tmp_path: Path) -> None:
    with serve(order(), tmp_path / "s"):
        drawing = drawing_at(tmp_path / "s")
        os.kill(drawing, signal.SIGSTOP)
        for _ in range(3):
            with socket.socket(socket.AF_UNIX) as hasty:
                hasty.connect(str(tmp_path / "s"))
        os.kill(drawing, signal.SIGCONT)
        assert NodeOrder(order(), tmp_path / "s").batch(0).tolist() == stream(0, 1)[0]


def test_a_socket_left_by_a_killed_run(tmp_path: Path) -> None:
    (tmp_path / "s").touch()
    with serve(order(), tmp_path / "s"):
        assert os.stat(tmp_path / "s").st_mode & 0o077 == 0, "another user could connect"
        assert NodeOrder(order(), tmp_path / "s").batch(0).tolist() == stream(0, 1)[0]
