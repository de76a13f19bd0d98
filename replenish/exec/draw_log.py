"""The file in which a process writes what its loaders draw: chunks that are appended, and readable after a kill.

A chunk is a line of JSON and as many bytes as it says, with their checksum. The last chunk of a process that was killed
may be cut off; a reader takes all chunks before it.
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

#: How the files of a run's processes are named, beside their process ids.
SUFFIX = ".draws"
_PLAIN, _ZIPPED = b"p", b"z"  # how a plane of bytes is kept


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until a condition holds, such as that all processes of a run have written something; not for ever."""
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
    """Return whether the process that writes a log has ended by itself."""
    return any(header["kind"] == "closed" for header, _ in read_chunks(path))


def pack(values: Int64Array) -> tuple[dict[str, Any], bytes]:
    """Return integers as few bytes, and what `unpack` needs to know.

    Each takes as many bytes as the largest needs. All first bytes come before all second ones. Bytes that do not
    compress, as of random indices, are left as they are: trying would take longer than everything else.
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


def _compressed(plane: bytes) -> bytes:
    sample = plane[:4096]
    if len(zlib.compress(sample, 1)) > 0.95 * len(sample):
        return _PLAIN + plane
    return _ZIPPED + zlib.compress(plane, 1)
