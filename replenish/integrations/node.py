"""One pool per machine: a process of its own draws the batches, and the training processes of the node read them.

A pool takes 4 bytes a sample in every process. That is nothing for a million samples; for a billion it is 4 GB, and
32 GB on a node with eight training processes, all holding the same numbers. `serve` starts the one process that
draws, and `NodeOrder` is an `Order` that asks it, over a Unix socket: the stream is the same, bit for bit.

Nothing can hang: the drawing process ends when the process that started it ends, however that came about, and the
kernel then closes the sockets, which the others see as an error; one that is stopped is found out by its silence.
Nobody gets another's stream: a reader compares the whole config of the order that is drawn with its own, and that the
process that draws is of the same user.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pickle
import socket
import stat
import struct
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from replenish import checks
from replenish.draws import Int64Array
from replenish.integrations.drawing import NUMBER, received
from replenish.locks import ForkSafeLock
from replenish.orders.protocol import Order


@contextlib.contextmanager
def serve(order: Order, path: str | Path) -> Iterator[None]:
    """Run a process that draws `order` for all processes of this machine, for as long as the context lasts.

    One process of the node calls it, say the one with LOCAL_RANK 0; all of them then make a `NodeOrder`.

    Args:
        order: What to draw; it must be picklable, as all orders of the library are.
        path: A path for the socket, of this job alone, short, on a local file system, in a folder that no other user
            can write to.
    """
    path = Path(path)
    _check_folder(path)
    if _somebody_answers(path):
        raise ValueError(
            f"path should be of this job alone, but another one draws at {path}; put the job's number into the path"
        )
    path.unlink(missing_ok=True)  # one that was left by a run that was killed
    process = subprocess.Popen(
        [sys.executable, "-m", "replenish.integrations.drawing", str(path), str(os.getpid())], stdin=subprocess.PIPE
    )
    try:
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(pickle.dumps(order))
        while not path.exists():
            if process.poll() is not None:
                raise RuntimeError(f"the drawing process ended with code {process.returncode}; its message is above")
            time.sleep(0.01)
        yield
    finally:
        process.kill()  # one that is stopped would not hear a request to end, and would be waited for
        process.wait()
        path.unlink(missing_ok=True)


class NodeOrder:
    """An `Order` that is drawn by the process that `serve` started on this machine.

    Its stream, its config and so its checkpoints are those of `order`, of which it never builds the pool. Give it to
    `replenish.torch.OrderBatchSampler`.

    Args:
        order: The order served, for its sizes and its config.
        path: The socket's path that was given to `serve`.
        timeout: How many seconds to wait for `serve` to begin, and for a sign of life of the process that draws.
    """

    def __init__(self, order: Order, path: str | Path, *, timeout: float = 60) -> None:
        self._order, self._path, self._timeout = order, str(path), timeout
        self._socket: socket.socket | None = None
        self._process = 0  # that has connected; a fork must not share a connection
        self._lock = ForkSafeLock()  # one question and its answer at a time

    @property
    def num_samples(self) -> int:
        """How many samples there are."""
        return self._order.num_samples

    @property
    def batch_size(self) -> int:
        """How many samples a step draws, over all processes."""
        return self._order.batch_size

    @property
    def last_batch_size(self) -> int:
        """How many samples the last step of an epoch draws."""
        return getattr(self._order, "last_batch_size", self._order.batch_size)

    @property
    def steps_per_epoch(self) -> int:
        """How many steps make an effective epoch."""
        return self._order.steps_per_epoch

    def effective_epoch(self, step: int) -> float:
        """Return how many effective epochs the first `step` steps make."""
        return self._order.effective_epoch(step)

    def config(self) -> dict[str, int | str]:
        """Return the config of the order served: checkpoints with and without a shared pool are the same."""
        return self._order.config()

    def batches(self, start: int = 0, stop: int | None = None) -> Iterator[Int64Array]:
        """Yield the indices of steps start, start + 1, ... up to `stop` or without end."""
        start = checks.step(start, "start")
        return map(self.batch, itertools.count(start) if stop is None else range(start, checks.step(stop, "stop")))

    def batch(self, step: int) -> Int64Array:
        """Return the indices of `step`.

        Raises:
            ConnectionError: The drawing process has ended.
        """
        step = checks.step(step)
        with self._lock.lock:
            known = self._socket if self._process == os.getpid() else None
            connection = self._connected() if known is None else known
            try:
                if known is None:
                    self._check_server(connection)
                    self._socket, self._process = connection, os.getpid()
                connection.sendall(NUMBER.pack(step))
                (size,) = NUMBER.unpack(received(connection, NUMBER.size, self._check_alive))
                return np.frombuffer(received(connection, size, self._check_alive), dtype="<i8").astype(np.int64)
            except BaseException as error:
                connection.close()
                self._socket = None  # after half an answer, the next would be taken for its rest
                if isinstance(error, TimeoutError):
                    raise ConnectionError(
                        f"the process that draws at {self._path} gave no sign of life for {self._timeout} seconds; "
                        f"start the run again"
                    ) from error
                if isinstance(error, OSError):
                    raise ConnectionError(
                        f"the process that draws at {self._path} has ended; start the run again"
                    ) from error
                raise

    def _check_alive(self) -> None:
        """Raise if the process that draws has not touched its socket for long."""
        if time.time() - os.stat(self._path).st_mtime > self._timeout:
            raise TimeoutError

    def _connected(self) -> socket.socket:
        end = time.monotonic() + self._timeout
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.settimeout(min(1.0, self._timeout))
                connection.connect(self._path)
                break
            except OSError as error:
                connection.close()
                if time.monotonic() > end:
                    raise ConnectionError(f"nobody draws at {self._path} after {self._timeout} seconds") from error
                time.sleep(0.05)
        weakref.finalize(self, connection.close)
        return connection

    def _check_server(self, connection: socket.socket) -> None:
        """Refuse a process of another user, or one that draws another order."""
        _check_user(connection, self._path)
        (size,) = NUMBER.unpack(received(connection, NUMBER.size, self._check_alive))
        drawn = json.loads(received(connection, size, self._check_alive).decode())
        if drawn != (here := json.loads(json.dumps(self._order.config()))):
            differing = ", ".join(
                f"{name} is {drawn.get(name, 'missing')!r} there but {here.get(name, 'missing')!r} here"
                for name in sorted({*drawn, *here})
                if drawn.get(name, "missing") != here.get(name, "missing")
            )
            raise ValueError(f"order should be the one that is drawn at {self._path}, but {differing}")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"} | {"_socket": None}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        vars(self).update(saved, _lock=ForkSafeLock())


def _check_folder(path: Path) -> None:
    """Refuse a folder in which another user could put a socket of his own."""
    folder = os.stat(path.parent)
    others_write = folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not folder.st_mode & stat.S_ISVTX
    if others_write or folder.st_uid not in (0, os.geteuid()):
        raise ValueError(
            f"path should be in a folder that only this user can write to, but {path.parent} is of user "
            f"{folder.st_uid} with mode {stat.S_IMODE(folder.st_mode):o}"
        )


def _check_user(connection: socket.socket, path: str) -> None:
    """Refuse a process of another user, where the kernel tells."""
    if hasattr(socket, "SO_PEERCRED"):
        size = struct.calcsize("3i")
        _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        if user != os.geteuid():
            raise ValueError(f"path should be of a process of this user, but user {user} draws at {path}")


def _somebody_answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True
