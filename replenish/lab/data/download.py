"""Download a CIFAR archive and verify it; a broken download resumes.

The archive grows as `.part` and gets its name when its md5 is right.
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

# Called with the bytes so far, and the total if it is known.
Progress = Callable[[int, "int | None"], None]

CHUNK = 1 << 18
TIMEOUT = 30.0
# Connections tried before the command fails.
ATTEMPTS = 3


def get(
    files: CifarFiles,
    root: str | os.PathLike[str] | None = None,
    *,
    url: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Return the folder or archive with the files of a CIFAR, verified, after downloading it if necessary.

    `root` is as for `data_root`. `url` is another address of the official archive, such as a mirror.
    """
    if url is not None:
        _check_url(url)  # even if it is not needed: a mistake should be found now
    found = find(files, root)
    if found is None:
        found = data_root(root) / f"{files.archive}.tar.gz"
        found.parent.mkdir(parents=True, exist_ok=True)
        fetch(url or files.url, found, files.archive_md5, progress=progress)
    read_verified(files, found)
    return found


def fetch(url: str, target: Path, md5: str, *, progress: Progress | None = None) -> None:
    """Download an https `url` to `target`, which appears when it is whole and its md5 is right.

    A part that an earlier try left in `target`.part is not fetched again.
    """
    _check_url(url)
    part = target.with_name(target.name + ".part")
    resumed = part.exists()
    _fetch_all(url, part, progress)
    if hashlib.md5(part.read_bytes(), usedforsecurity=False).hexdigest() == md5:
        os.replace(part, target)
        return
    part.unlink()
    if not resumed:
        raise DataError(f"{url} gave a file that is not the official archive (its md5 differs)")
    # The earlier try may have left something else: another version, a page of a login portal.
    fetch(url, target, md5, progress=progress)


def _check_url(url: str) -> None:
    if not re.match(r"https://[\w.-]+(:\d+)?/|http://127\.0\.0\.1:\d+/", url):
        raise ValueError(f"url should be an address that begins with https://, but got {url!r}")


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
    headers = {"User-Agent": "replenish", "Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        # 416: the server has no more bytes. The part is complete, or its md5 is wrong.
        if error.code != 416 or not have:
            raise
        error.close()
        return
    with response, part.open("ab" if response.status == 206 else "wb") as file:
        length = response.headers.get("Content-Length", "")
        total = file.tell() + int(length) if length.isdigit() else None
        while chunk := response.read(CHUNK):
            file.write(chunk)
            if progress is not None:
                progress(file.tell(), total)
        if total is not None and file.tell() < total:
            raise ConnectionError(f"the connection ended after {file.tell()} of {total} bytes")
