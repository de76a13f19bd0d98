"""What a loader drew, pass by pass, and which samples those are: the data of an audit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from replenish.draws import Int64Array
from replenish.measure.reading import Draws, Epoch

# The attributes in which datasets keep their contents or labels, as torchvision's do.
_CONTENTS = ("tensors", "data", "targets", "labels", "samples", "imgs")
_HASHED = 2**24  # about how many bytes of an array are hashed


@dataclass(frozen=True, eq=False)
class Record:
    """The passes of one loader.

    Attributes:
        passes: The passes, in order.
        num_samples: How many samples the dataset has; for a stream, how many different items came.
        is_stream: Whether items were identified by their hash.
        items: For a stream, the first item of each number, from which labels can be computed.
        identity: Which samples of the root dataset the positions are; None if unknown.
        weights: The weights of the sampler; None if it has none.
    """

    passes: list[Epoch]
    num_samples: int
    is_stream: bool = False
    items: list[Any] = field(default_factory=list)
    identity: Identity | None = None
    weights: np.ndarray[Any, np.dtype[np.float64]] | None = None

    @property
    def whole_passes(self) -> list[Epoch]:
        """The passes that reached their end."""
        return [each for each in self.passes if each.whole]

    def draws(self) -> Draws:
        """Return all passes as one series of steps."""
        return Draws(
            np.concatenate([each.samples for each in self.passes]),
            np.concatenate([each.sizes for each in self.passes]),
            self.num_samples,
        )

    def counts(self) -> Int64Array:
        """Return how often each sample came in each whole pass, (passes, num_samples)."""
        return np.stack([np.bincount(each.samples, minlength=self.num_samples) for each in self.whole_passes])

    @property
    def batch_size(self) -> int:
        """The usual size of a batch."""
        return int(np.median(np.concatenate([each.sizes for each in self.passes])))


@dataclass(frozen=True, eq=False)
class Identity:
    """Which samples of its root a dataset has; the root is the dataset below all of its Subsets.

    Attributes:
        root: A name for the root: equal for two objects only if they hold the same samples. If the contents are not
            visible, it is `kind`, an @ and the object's id.
        root_size: The length of the root.
        samples: For each position of the dataset its index in the root; None if the two are equal.
    """

    root: str
    root_size: int
    samples: Int64Array | None = None

    @property
    def kind(self) -> str:
        """A name that datasets share if they may hold the same samples."""
        return self.root.partition("@")[0]

    def samples_of(self, positions: Int64Array) -> Int64Array:
        """Return the samples of the root at some positions, without those outside the dataset."""
        if self.samples is None:
            return positions
        return self.samples[positions[(positions >= 0) & (positions < len(self.samples))]]


def identify(dataset: Any) -> Identity | None:
    """Return which samples the positions of a dataset are; None for a dataset without a length."""
    samples: Int64Array | None = None
    while hasattr(dataset, "indices") and hasattr(dataset, "dataset"):  # torch's Subset, and classes like it
        indices = np.asarray(dataset.indices)
        if indices.dtype.kind not in "iu" or indices.ndim != 1:
            break
        indices = indices.astype(np.int64)
        samples, dataset = (indices if samples is None else indices[samples]), dataset.dataset
    try:
        size = len(dataset)
    except (TypeError, NotImplementedError):
        return None
    return Identity(_fingerprint(dataset, size), size, samples)


def _fingerprint(dataset: Any, size: int) -> str:
    """Return a name that two objects share if they hold the same contents, as far as their public attributes show.

    Two objects of one class over the same files share it even if their transforms differ. An object whose contents are
    not visible shares its name with no other.
    """
    state = hashlib.blake2b(f"{type(dataset).__module__}.{type(dataset).__qualname__} {size}".encode(), digest_size=12)
    seen = False
    for name in _CONTENTS:
        values = getattr(dataset, name, None)
        parts = values if isinstance(values, (list, tuple)) and name == "tensors" else [values]
        for part in parts:
            content = _content(part)
            if content is not None:
                state.update(name.encode() + content)
                seen = True
    if isinstance(dataset, range):
        state.update(repr(dataset).encode())
    elif not seen:
        return f"{state.hexdigest()}@{id(dataset)}"
    return state.hexdigest()


def _content(values: Any) -> bytes | None:
    try:
        if isinstance(values, list):
            return repr(values[:1000]).encode() + repr(values[-1000:]).encode()
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):  # ragged, or on another device
        return None
    if array.ndim == 0 or array.dtype.hasobject:
        return None
    stride = max(1, array.nbytes // _HASHED)
    return f"{array.dtype}{array.shape}".encode() + np.ascontiguousarray(array[::stride]).tobytes()
