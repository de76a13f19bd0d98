"""Files out of a `.tar.gz` or `.tar.xz` from outside, read in passing with a limit on everything.

Python's tarfile takes a header's word for its size: one of a few hundred bytes, compressed, can ask for gigabytes of
memory or for minutes. What the archives here need of the format is little, so it is read here: files by name, one after
the other, whatever else there is passed over.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from replenish.lab.data.dataset import DataError

# The largest official file has 155 MB, and a whole archive 186; what goes far beyond is no part of the data.
MAX_MEMBER_BYTES = 1 << 28
MAX_ARCHIVE_BYTES = 1 << 30
MAX_MEMBERS = 1000
# A dictionary of xz can ask for gigabytes; the strongest preset has 64 MB.
MAX_DECODER_BYTES = 1 << 28
CHUNK = 1 << 16
BLOCK = 512
FILES, FOLDERS, EXTENSIONS = (b"0", b"\0", b"7"), (b"5",), (b"x", b"g", b"L", b"K")


def read_files(path: Path, folder: str, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of `names` that an archive has in `folder`, with their contents, and stop when it had all.

    Nothing is unpacked, and everything in the archive has to be in that folder.

    Raises:
        DataError: It is damaged or cut short, or holds what no official archive has.
    """
    left = set(names)
    with path.open("rb") as file:
        content = _Content(file, path)
        for _ in range(MAX_MEMBERS):
            member = _member(content, path)
            if member is None:
                return
            name, size, kind = member
            if kind not in EXTENSIONS:  # which speak of times and of long names, and none here is long
                _check(name, size, kind, folder, path)
            inside = str(PurePosixPath(name).relative_to(folder)) if kind in FILES else ""
            if inside in left:
                left.discard(inside)
                yield inside, content.read(size)
            else:
                content.skip(size)
            content.skip(-size % BLOCK)
            if not left:
                return
        raise DataError(f"{path} has more than {MAX_MEMBERS} members, far more than the official archive")


def _check(name: str, size: int, kind: bytes, folder: str, path: Path) -> None:
    """Refuse a member that is anything but a file or folder of ordinary size inside `folder`."""
    parts = PurePosixPath(name).parts
    if parts[:1] != (folder,) or ".." in parts or "\\" in name:
        raise DataError(f"{path}: member {name!r} is outside of {folder}")
    if kind not in FILES + FOLDERS:
        raise DataError(f"{path}: member {name!r} is neither a file nor a folder")
    if size > MAX_MEMBER_BYTES:
        raise DataError(f"{path}: member {name!r} claims {size} bytes")


def _member(content: _Content, path: Path) -> tuple[str, int, bytes] | None:
    """Return the name, size and kind that the next header tells, or None at the end."""
    header = content.read(BLOCK)
    if not any(header):
        return None
    try:
        told = int(header[148:156].strip(b" \0"), 8)
        size = int(header[124:136].strip(b" \0") or b"0", 8)
    except ValueError:
        told, size = -1, -1
    if told != sum(header[:148]) + sum(header[156:]) + 8 * ord(" ") or size < 0:
        raise DataError(f"{path} is no readable archive (a header is damaged)")
    name = _text(header[:100])
    if header[257:263] == b"ustar\0" and header[345:500].strip(b"\0"):  # GNU's own format has other things there
        name = f"{_text(header[345:500])}/{name}"
    return name, size, header[156:157]


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")


class _Content:
    """What a compressed file holds, read forwards in pieces, to a limit."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file, self._path = file, path
        self._compressed = file.read(CHUNK)
        self._is_xz = self._compressed.startswith(b"\xfd7zXZ")
        if not self._is_xz and not self._compressed.startswith(b"\x1f\x8b"):
            raise DataError(f"{path} is no readable archive (neither gzip nor xz)")
        self._decoder = self._new_decoder()
        self._buffer = bytearray()
        self._total = 0

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        while len(self._buffer) < size:
            self._buffer += self._more()
        taken = bytes(memoryview(self._buffer)[:size])
        del self._buffer[:size]
        return taken

    def skip(self, size: int) -> None:
        """Pass over the next `size` bytes."""
        while size > 0:
            size -= len(self.read(min(size, CHUNK)))

    def _new_decoder(self) -> lzma.LZMADecompressor | zlib._Decompress:
        return lzma.LZMADecompressor(memlimit=MAX_DECODER_BYTES) if self._is_xz else zlib.decompressobj(wbits=31)

    def _more(self) -> bytes:
        try:
            found = self._decoded()
        except (lzma.LZMAError, zlib.error, EOFError) as error:
            raise DataError(f"{self._path} is no readable archive, or is cut short ({error})") from None
        self._total += len(found)
        if self._total > MAX_ARCHIVE_BYTES:
            raise DataError(f"{self._path} unpacks to far more bytes than the official files have")
        return found

    def _decoded(self) -> bytes:
        """Return some more bytes, at most a chunk."""
        if self._decoder.eof:  # another stream may follow: both formats allow it
            self._compressed = self._decoder.unused_data
            self._decoder = self._new_decoder()
        if isinstance(self._decoder, lzma.LZMADecompressor):
            given = (self._compressed or self._file.read(CHUNK)) if self._decoder.needs_input else b""
            self._compressed = b""
            ended = self._decoder.needs_input and not given
        else:
            given = self._decoder.unconsumed_tail or self._compressed or self._file.read(CHUNK)
            self._compressed = b""
            ended = not given
        if ended:
            raise EOFError("its end is missing")
        return self._decoder.decompress(given, CHUNK)
