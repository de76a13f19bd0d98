"""Download, verify and unpack a CIFAR archive.

Nothing gets its final name before it is complete. The archive grows as `.part`, and the folder is unpacked next to its
final place, checked file by file, and renamed. An interrupted download of 170 MB resumes, which pooch does not do.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import shutil
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

from replenish.lab.atomic_files import flush_folder, write_flushed
from replenish.lab.data.cifar import read_verified
from replenish.lab.data.cifar_files import CifarFiles, data_root, find
from replenish.lab.data.dataset import DataError

# Called with the bytes so far, and the total if it is known.
Progress = Callable[[int, "int | None"], None]

CHUNK = 1 << 18
TIMEOUT = 30.0
# Connections tried before the command fails.
ATTEMPTS = 3
MAX_ARCHIVE_BYTES = 1 << 30
SECONDS_UNTIL_STALE = 3600


def get(
    files: CifarFiles,
    root: str | os.PathLike[str] | None = None,
    *,
    url: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Return the folder with the files of a CIFAR, after downloading them if necessary.

    An existing folder is verified. An existing archive is unpacked. Otherwise the official archive is downloaded,
    verified, unpacked and removed. `root` is as for `data_root`. `url` is another address of the same archive, such as
    a mirror; its md5 must be the official one.
    """
    if url is not None:
        _check_url(url)  # even if it is not needed: a mistake should be found now
    found = find(files, root)
    if found is not None and found.is_dir():
        read_verified(files, found)
        return found
    if found is not None:
        return unpack(files, found, found.parent)
    base = data_root(root)
    base.mkdir(parents=True, exist_ok=True)
    archive = base / f"{files.archive}.tar.gz"
    fetch(url or files.url, archive, files.archive_md5, progress=progress)
    folder = unpack(files, archive, base)
    archive.unlink()
    return folder


def fetch(url: str, target: Path, md5: str, *, progress: Progress | None = None) -> None:
    """Download an https `url` to `target`, which appears when it is whole and its md5 is right.

    A part that an earlier try left in `target`.part is not fetched again.
    """
    _check_url(url)
    part = target.with_name(target.name + ".part")
    resumed = part.exists() and part.stat().st_size > 0
    _fetch_all(url, part, progress)
    if _md5(part) != md5 and resumed:
        # The earlier try may have left something else: another version, a page of a login portal.
        part.unlink()
        _fetch_all(url, part, progress)
    if _md5(part) != md5:
        part.unlink()
        raise DataError(f"{url} gave a file that is not the official archive (its md5 differs)")
    os.replace(part, target)


def _check_url(url: str) -> None:
    try:
        parsed = urllib.parse.urlsplit(url)
        host, scheme = parsed.hostname, parsed.scheme
    except ValueError:  # such as half an address of IPv6
        host, scheme = None, ""
    if not host or (scheme != "https" and not (scheme == "http" and host == "127.0.0.1")):
        raise ValueError(f"url should be an address that begins with https://, but got {url!r}")


def unpack(files: CifarFiles, archive: Path, root: Path) -> Path:
    """Unpack an archive into `root`: the whole folder, verified, or nothing."""
    contents = read_verified(files, archive)
    target = root / files.folder
    _clear_stale(root, files.folder)
    # Next to the target, so that the final rename stays within one file system.
    with tempfile.TemporaryDirectory(prefix=f".{files.folder}-", dir=root, ignore_cleanup_errors=True) as staging:
        folder = Path(staging) / files.folder
        folder.mkdir()
        for name, content in contents.items():
            write_flushed(folder / name, content)
        flush_folder(folder)
        try:
            os.rename(folder, target)
        except OSError:
            # Another process may have been quicker; then its folder, once verified, is as good.
            if not target.is_dir():
                raise
            read_verified(files, target)
    flush_folder(root)
    return target


def _clear_stale(root: Path, folder: str) -> None:
    """Remove the folders that killed processes left an hour ago or earlier."""
    for left in root.glob(f".{folder}-*"):
        if time.time() - left.stat().st_mtime > SECONDS_UNTIL_STALE:
            shutil.rmtree(left, ignore_errors=True)


def _fetch_all(url: str, part: Path, progress: Progress | None) -> None:
    """Download to `part` until it is complete; a new connection resumes where the last one broke."""
    host = urllib.parse.urlsplit(url).hostname
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _fetch_rest(url, part, progress)
            return
        except urllib.error.HTTPError as error:
            error.close()
            raise DataError(f"{host} answered {error.code} {error.reason} for {url}") from None
        except (OSError, http.client.HTTPException) as error:
            if attempt == ATTEMPTS:
                reason = getattr(error, "reason", None) or error
                kept = part.stat().st_size if part.exists() else 0
                advice = f"; {kept} bytes are kept, run it again to resume" if kept else ""
                raise DataError(f"could not download from {host} ({reason}){advice}") from None


def _fetch_rest(url: str, part: Path, progress: Progress | None) -> None:
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "replenish", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        # 416: the server has no more bytes. The part is complete, or its md5 is wrong.
        if error.code != 416 or not have:
            raise
        error.close()
        return
    with response:
        if url.startswith("https:") and not response.url.startswith("https:"):
            raise DataError(f"{url} leads to an address without https: {response.url}")
        start, total = _extent(response, have)
        if total is not None and total > MAX_ARCHIVE_BYTES:
            raise DataError(f"{url} announces {total} bytes, far more than the archive has")
        with part.open("r+b" if start else "wb") as file:
            file.seek(start)
            file.truncate()
            while chunk := response.read(CHUNK):
                file.write(chunk)
                if file.tell() > MAX_ARCHIVE_BYTES:
                    raise DataError(f"{url} sends far more bytes than the archive has")
                if progress is not None:
                    progress(file.tell(), total)
            file.flush()
            os.fsync(file.fileno())
            done = file.tell()
    if total is not None and done < total:
        raise ConnectionError(f"the connection ended after {done} of {total} bytes")


def _extent(response: http.client.HTTPResponse, have: int) -> tuple[int, int | None]:
    """Return where in the file the response starts, and the size of the whole file."""
    if response.status == 206:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        if match is None or int(match[1]) != have:
            raise DataError(f"the server should send the file from byte {have} on, but sent another part")
        return have, None if match[2] == "*" else int(match[2])
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdigit() else None


def _md5(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
