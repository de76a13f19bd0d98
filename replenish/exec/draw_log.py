"""The file in which a process writes what its loaders draw: chunks that are appended, and readable after a kill.

A chunk is a line of JSON and as many bytes as it says, with their checksum. The last chunk of a process that was killed
may be cut off; a reader takes all chunks before it.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from replenish.draws import Int64Array

#: How the files of a run's processes are named, beside their process ids.
SUFFIX = ".draws"


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
            except ValueError:
                return
            payload = file.read(header["bytes"])
            if len(payload) < header["bytes"] or zlib.crc32(payload) != header["checksum"]:
                return
            yield header, payload


def pack(values: Int64Array) -> tuple[dict[str, Any], bytes]:
    """Return integers as few bytes, and what `unpack` needs to know.

    Each takes as many bytes as the largest needs, and all first bytes come before all second ones, which compresses
    orders that are not random.
    """
    low = int(values.min()) if len(values) else 0
    offsets = (values - low).astype("<u8")  # hashes use all 64 bits: the difference wraps around
    width = max(1, (int(offsets.max()).bit_length() + 7) // 8) if len(values) else 1
    planes = offsets.view(np.uint8).reshape(-1, 8)[:, :width].T
    return {"count": len(values), "low": low, "width": width}, zlib.compress(np.ascontiguousarray(planes).tobytes(), 1)


def unpack(header: dict[str, Any], payload: bytes) -> Int64Array:
    """Return the integers that `pack` packed."""
    planes = np.frombuffer(zlib.decompress(payload), dtype=np.uint8).reshape(header["width"], header["count"])
    whole = np.zeros((header["count"], 8), dtype=np.uint8)
    whole[:, : header["width"]] = planes.T
    return whole.reshape(-1).view("<i8") + np.int64(header["low"])
