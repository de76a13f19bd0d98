"""The log in which a process writes what its loaders draw, readable even if the process was killed.

A log is a sequence of chunks. Each is a line of JSON and a payload, whose length and checksum are in the line. The last
chunk of a process that was killed may be cut off; a reader takes all chunks before it.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from replenish.draws import Int64Array

#: The ending of a log's name, after the process id.
SUFFIX = ".draws"
_PLAIN, _ZIPPED = b"p", b"z"  # the first byte of a plane: stored as it is, or compressed


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until a condition holds, for at most so many seconds."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)


def append_chunk(path: str | os.PathLike[str], header: dict[str, Any], payload: bytes = b"") -> None:
    """Append a chunk to a log."""
    line = json.dumps({**header, "bytes": len(payload), "checksum": zlib.crc32(payload)}, separators=(",", ":"))
    with open(path, "ab") as file:
        file.write(line.encode() + b"\n" + payload)


def read_chunks(path: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the chunks of a log, up to the first that is cut off or damaged."""
    with path.open("rb") as file:
        while line := file.readline():
            try:
                header = json.loads(line)
                length, checksum = header["bytes"], header["checksum"]
            except (ValueError, TypeError, KeyError):
                return
            payload = file.read(length)
            if len(payload) < length or zlib.crc32(payload) != checksum:
                return
            yield header, payload


def is_closed(path: Path) -> bool:
    """Return whether the process that wrote a log has ended normally."""
    return any(header["kind"] == "closed" for header, _ in read_chunks(path))


def pack(values: Int64Array) -> tuple[dict[str, Any], bytes]:
    """Return a header for `unpack`, and integers packed into few bytes.

    Every integer takes as many bytes as the largest needs. All lowest bytes come first, then all second bytes: each is
    a plane. A plane whose beginning does not compress, as of random indices, is stored as it is, since compressing it
    would take longer than everything else.
    """
    low = int(values.min()) if len(values) else 0
    offsets = (values - low).astype("<u8")  # hashes use all 64 bits: the difference wraps around
    width = max(1, (int(offsets.max()).bit_length() + 7) // 8) if len(values) else 1
    planes = [_compressed(each.tobytes()) for each in offsets.view(np.uint8).reshape(-1, 8)[:, :width].T]
    return {"count": len(values), "low": low, "planes": [len(each) for each in planes]}, b"".join(planes)


def unpack(header: dict[str, Any], payload: bytes) -> Int64Array:
    """Return the integers that `pack` packed."""
    whole = np.zeros((header["count"], 8), dtype=np.uint8)
    start = 0
    for place, length in enumerate(header["planes"]):
        plane = payload[start : start + length]
        start += length
        whole[:, place] = np.frombuffer(zlib.decompress(plane[1:]) if plane[:1] == _ZIPPED else plane[1:], np.uint8)
    return whole.reshape(-1).view("<i8") + np.int64(header["low"])


def pack_batches(samples: Int64Array, sizes: Int64Array) -> tuple[dict[str, Any], bytes]:
    """Return a header for `unpack_batches`, and the samples and sizes of batches packed into few bytes."""
    header, payload = pack(samples)
    sizes_header, more = pack(sizes)
    return {**header, "sizes": sizes_header, "split": len(payload)}, payload + more


def unpack_batches(header: dict[str, Any], payload: bytes) -> tuple[Int64Array, Int64Array]:
    """Return the samples and sizes that `pack_batches` packed."""
    split = header["split"]
    return unpack(header, payload[:split]), unpack(header["sizes"], payload[split:])


def _compressed(plane: bytes) -> bytes:
    sample = plane[:4096]
    if len(zlib.compress(sample, 1)) > 0.95 * len(sample):
        return _PLAIN + plane
    return _ZIPPED + zlib.compress(plane, 1)
