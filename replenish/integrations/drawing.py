"""The process that draws for a whole machine: it answers step numbers with batches, over a Unix socket.

`replenish.integrations.node` starts it. A reader first hears which order is drawn, as JSON. Then a request is the
step, an answer the size in bytes and the batch; all numbers are 64-bit integers, the low byte first. While it lives,
the process touches its socket's file, so that readers can tell waiting from hanging.
"""

from __future__ import annotations

import json
import os
import pickle
import selectors
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from replenish.integrations.recent import KEPT_STEPS, RecentBatches
from replenish.orders.protocol import Order

NUMBER = struct.Struct("<q")
# How many steps it draws while nobody asks, beyond the farthest step asked for.
STEPS_AHEAD = 16
# How often, in seconds, it looks whether the process that started it is still there.
WATCH_EVERY = 0.5


def draw(order: Order, path: str, parent: int) -> None:
    """Answer whoever connects, in one thread, and draw ahead while nobody asks."""
    batches = RecentBatches(order)
    config = json.dumps(order.config()).encode()
    farthest = drawn = -2 * KEPT_STEPS  # the farthest step asked for, and the farthest one drawn
    selector = selectors.DefaultSelector()
    with socket.socket(socket.AF_UNIX) as listener:
        os.umask(0o077)  # for this user alone
        listener.bind(path)
        listener.listen(1024)
        threading.Thread(target=_watch, args=(path, parent), daemon=True).start()
        selector.register(listener, selectors.EVENT_READ)
        while True:
            idle = drawn >= farthest + STEPS_AHEAD or farthest < 0
            ready = selector.select(None if idle else 0)
            for key, _ in ready:
                if key.fileobj is listener:
                    connection = listener.accept()[0]
                    connection.settimeout(60)  # one that does not read must not stop the others for ever
                    if _sent(connection, config):
                        selector.register(connection, selectors.EVENT_READ)
                elif (step := _answer(key.fileobj, batches)) is None:
                    selector.unregister(key.fileobj)
                elif abs(step - farthest) > KEPT_STEPS:  # a jump: begin to count anew
                    farthest = drawn = step
                else:
                    farthest, drawn = max(farthest, step), max(drawn, step)
            if not ready and not idle:
                drawn += 1
                batches[drawn]


def _watch(path: str, parent: int) -> None:
    """Show that this process lives, and end it when its parent or its socket has gone, also in a long search."""
    while os.getppid() == parent:
        try:
            os.utime(path)
        except OSError:
            break
        time.sleep(WATCH_EVERY)
    os._exit(1)


def _answer(connection: Any, batches: RecentBatches) -> int | None:
    """Send the batch asked for and return its step, or None if there is no reader any more."""
    try:
        (step,) = NUMBER.unpack(received(connection, NUMBER.size))
    except OSError:
        connection.close()
        return None
    return int(step) if _sent(connection, batches[step].astype("<i8").tobytes()) else None


def _sent(connection: socket.socket, data: bytes) -> bool:
    """Send a size and as many bytes; return whether there is a reader: one that has gone must not end the others'."""
    try:
        connection.sendall(NUMBER.pack(len(data)) + data)
    except OSError:
        connection.close()
        return False
    return True


def received(connection: socket.socket, size: int, waited: Callable[[], None] | None = None) -> bytearray:
    """Return `size` bytes from a connection, or raise if it ends before; call `waited` after every time-out."""
    data = bytearray()
    while len(data) < size:
        try:
            part = connection.recv(size - len(data))
        except TimeoutError:
            if waited is None:
                raise
            waited()
            continue
        if not part:
            raise ConnectionResetError
        data += part
    return data


if __name__ == "__main__":
    draw(pickle.load(sys.stdin.buffer), sys.argv[1], int(sys.argv[2]))
