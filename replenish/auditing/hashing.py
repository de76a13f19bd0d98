"""Hashes of contents, which identify samples that have no index."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np


def item_hash(item: Any) -> bytes:
    """Return a short hash of an item's numbers, strings and arrays, however they are nested."""
    state = hashlib.blake2b(digest_size=12)
    _update(state, item)
    return state.digest()


def sample_hashes(batch: Any) -> list[bytes]:
    """Return the hash of each sample of a collated batch, or one of the whole batch if its columns differ in length."""
    leaves = list(_leaves(batch))
    lengths = {len(leaf) for leaf in leaves}
    if len(lengths) != 1 or not leaves:
        return [item_hash(batch)]
    return [item_hash([leaf[place] for leaf in leaves]) for place in range(lengths.pop())]


def _leaves(value: Any) -> Any:
    """Yield the columns of a batch: its arrays, and its lists of strings or numbers."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _leaves(part)
    elif isinstance(value, (list, tuple)):
        if value and all(isinstance(part, (str, bytes, int, float)) for part in value):
            yield value
        else:
            for part in value:
                yield from _leaves(part)
    elif getattr(value, "ndim", 0):
        yield value


def _update(state: Any, item: Any) -> None:
    if isinstance(item, Mapping):
        state.update(b"{")
        for name in item:
            _update(state, name)
            _update(state, item[name])
    elif isinstance(item, (list, tuple)):
        state.update(b"[%d" % len(item))
        for part in item:
            _update(state, part)
    elif isinstance(item, (str, bytes, int, float, bool, type(None))):
        state.update(repr(item).encode())
    elif hasattr(item, "__array__"):
        array = np.asarray(item)
        state.update(f"{array.dtype}{array.shape}".encode())
        state.update(pickle.dumps(array.tolist()) if array.dtype.hasobject else np.ascontiguousarray(array).tobytes())
    else:
        state.update(pickle.dumps(item))  # only hashed, never loaded
    state.update(b"\0")
