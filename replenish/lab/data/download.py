"""Download a CIFAR archive and verify it.

The archive is written as `.part` and gets its name when its md5 is right. A broken download starts again.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

from replenish.lab.data.cifar import CifarFiles, data_root, find, read_verified
from replenish.lab.data.dataset import DataError

#: Called with the bytes so far, and the total if it is known.
Progress = Callable[[int, "int | None"], None]

CHUNK = 1 << 18
TIMEOUT = 30.0
# How often a download is tried.
ATTEMPTS = 3
MAX_ARCHIVE_BYTES = 1 << 30


def get(
    files: CifarFiles,
    root: str | os.PathLike[str] | None = None,
    *,
    url: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Return the folder or archive of a CIFAR, downloaded if necessary, and verified.

    `root` is as for `data_root`. `url` is another address of the official archive, such as a mirror.
    """
    if url is not None:
        _check_url(url)  # also if nothing is downloaded
    found = find(files, root)
    if found is None:
        found = data_root(root) / f"{files.archive}.tar.gz"
        found.parent.mkdir(parents=True, exist_ok=True)
        fetch(url or files.url, found, files.archive_md5, progress=progress)
    read_verified(files, found)
    return found


def fetch(url: str, target: Path, md5: str, *, progress: Progress | None = None) -> None:
    """Download an https `url` to `target`, which appears when it is complete and its md5 is right."""
    _check_url(url)
    host = urllib.parse.urlsplit(url).hostname
    part = target.with_name(target.name + ".part")
    try:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                found = _fetch_once(url, part, progress)
                break
            except urllib.error.HTTPError as error:
                error.close()
                raise DataError(f"{host} answered {error.code} {error.reason} for {url}") from None
            except (OSError, http.client.HTTPException) as error:
                if attempt == ATTEMPTS:
                    reason = getattr(error, "reason", None) or error
                    raise DataError(f"could not download from {host} ({reason})") from None
        if found != md5:
            raise DataError(f"{url} gave a file that is not the official archive (its md5 differs)")
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _check_url(url: str) -> None:
    if not re.match(r"https://[\w.-]+(:\d+)?/|http://127\.0\.0\.1:\d+/", url):
        raise ValueError(f"url should be an address that begins with https://, but got {url!r}")


def _fetch_once(url: str, part: Path, progress: Progress | None) -> str:
    """Download to `part` over one connection, and return the md5."""
    request = urllib.request.Request(url, headers={"User-Agent": "replenish", "Accept-Encoding": "identity"})
    digest = hashlib.md5(usedforsecurity=False)
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response, part.open("wb") as file:
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdigit() else None
        while chunk := response.read(CHUNK):
            file.write(chunk)
            digest.update(chunk)
            if file.tell() > MAX_ARCHIVE_BYTES:
                raise DataError(f"{url} sends far more bytes than the archive has")
            if progress is not None:
                progress(file.tell(), total)
        if total is not None and file.tell() < total:
            raise ConnectionError(f"the connection ended after {file.tell()} of {total} bytes")
    return digest.hexdigest()
