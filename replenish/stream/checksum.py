"""A checksum of items, to see whether a source gives the same ones again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from zlib import crc32

import numpy as np


def checksum(items: Iterable[object]) -> int:
    """Return a number in [0, 2**32) that is equal for equal items.

    Only texts, bytes and integers count, also as entries of a tuple or values of a dict. Other parts are left out:
    they may be augmented at random (images), and have no order-free comparison (objects).

    Example:
        >>> checksum(["a", ("b", 3)]) == checksum(["a", ("b", 3)]) != checksum(["a", ("b", 4)])
        True
    """
    total = 0
    for item in items:
        parts = item.values() if isinstance(item, Mapping) else item if isinstance(item, tuple) else (item,)
        total = crc32(b"item", total)
        for part in parts:
            if isinstance(part, (int, np.integer)):
                total = crc32(f"{int(part)};".encode(), total)
            elif isinstance(part, (str, bytes)):
                total = crc32(part.encode(errors="surrogatepass") if isinstance(part, str) else part, total)
    return total
