"""Pickles of plain values and byte arrays, read without running anything that they name.

A pickle may name any function of any module and have it called. The CIFAR files need only three names,
those with which numpy rebuilds an array; here even these do not lead to numpy but to stand-ins, which
accept an array of uint8 and nothing else. Every other name is refused before it is imported.
"""

from __future__ import annotations

import io
import math
import pickle
from typing import NoReturn

import numpy as np

from replenish.lab.data.dataset import DataError


def read_plain_pickle(content: bytes, what: str) -> object:
    """Return what a pickle of dicts, lists, numbers, byte strings and uint8 arrays holds; `what` is for the message.

    Strings of Python 2 come out as bytes.

    Raises:
        DataError: If it is damaged, or names anything but numpy's array.
    """
    try:
        return _replace_arrays(_Unpickler(io.BytesIO(content), encoding="bytes").load())
    except DataError as error:
        raise DataError(f"{what} {error}") from None
    except Exception as error:
        # Damaged pickles raise nearly any exception, and none of them says more than this.
        raise DataError(f"{what} is not a readable pickle ({type(error).__name__})") from None


class _Unpickler(pickle.Unpickler):
    """An unpickler that knows the names of numpy's array and no others."""

    def find_class(self, module: str, name: str) -> object:
        if module == "numpy.core.multiarray" and name == "_reconstruct":
            return _MakeArray()
        if module == "numpy" and name == "ndarray":
            return _Name()  # an argument of the function above, never called
        if module == "numpy" and name == "dtype":
            return _MakeDType()
        raise DataError(f"asks for {module}.{name}, which data has no need of")

    def persistent_load(self, pid: object) -> NoReturn:
        raise DataError("refers to objects outside itself")


class _Name:
    """What a pickle gets for a name. It refuses a state: a pickle cannot alter it for the next one."""

    __slots__ = ()

    def __setstate__(self, state: object) -> NoReturn:
        raise DataError("alters what it should only call")


class _MakeArray(_Name):
    """Stands for numpy's function that makes an empty array, to be filled by its state."""

    def __call__(self, *_: object) -> _Array:
        return _Array()


class _MakeDType(_Name):
    """Stands for `numpy.dtype`, called with a type code and two flags."""

    def __call__(self, code: object = None, *_: object) -> _DType:
        if code not in ("u1", b"u1"):
            raise DataError(f"holds an array of type {code!r:.20} and not of bytes")
        return _DType()


class _DType:
    """Stands for the type of a byte."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        """Accept and ignore the rest: a byte has no byte order, fields or alignment."""


class _Array:
    """Stands for a numpy array of uint8 while the pickle is read."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: np.ndarray[tuple[int, ...], np.dtype[np.uint8]] | None = None

    def __setstate__(self, state: object) -> None:
        """Build the array from numpy's state: version, shape, type, whether columns go first, bytes."""
        if not isinstance(state, tuple) or len(state) != 5:
            raise DataError("holds an array in an unknown form")
        _, shape, dtype, fortran, content = state
        whole = isinstance(shape, tuple) and all(type(side) is int and side >= 0 for side in shape)
        if not whole or not isinstance(dtype, _DType) or not isinstance(content, bytes):
            raise DataError("holds an array in an unknown form")
        if math.prod(shape) != len(content):
            raise DataError(f"holds an array of {shape} with {len(content)} bytes")
        self.value = np.frombuffer(content, dtype=np.uint8).reshape(shape, order="F" if fortran else "C")


def _replace_arrays(value: object) -> object:
    """Return `value` with the stand-ins in a dict's values replaced by the arrays that they hold."""
    if isinstance(value, dict):
        return {key: item.value if isinstance(item, _Array) else item for key, item in value.items()}
    return value.value if isinstance(value, _Array) else value
