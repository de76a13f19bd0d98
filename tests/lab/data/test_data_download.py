from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from test_data_fakes import fake_contents, fake_files, write_archive, write_folder

from replenish.lab.data import DataError
from replenish.lab.data.cifar import CIFAR100, load_cifar
from replenish.lab.data.download import fetch, get

CONTENTS = fake_contents(CIFAR100)
ARCHIVE = "cifar-100-python.tar.gz"


class Server(ThreadingHTTPServer):
    """A server of one file that notes what was asked for, and can be told to misbehave."""

    content = b""
    # Bytes after which each connection is cut, the first one first.
    cuts: tuple[int, ...] = ()
    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/cifar.tar.gz"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        server.asked += 1
        if server.status != 200:
            self.send_error(server.status)
            return
        self.send_response(200)
        body = server.content
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if server.cuts:
            body, server.cuts = body[: server.cuts[0]], server.cuts[1:]
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def files(server: Server, tmp_path_factory):
    """The stand-in archive, on the server."""
    files = fake_files(CIFAR100, CONTENTS)
    path = write_archive(tmp_path_factory.mktemp("made") / "cifar-100-python.tar.gz", files, CONTENTS)
    server.content = path.read_bytes()
    return replace(files, url=server.url, archive_md5=hashlib.md5(server.content).hexdigest())


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_get_downloads_and_verifies(server, files, tmp_path):
    seen: list[tuple[int, int | None]] = []
    archive = get(files, tmp_path / "new", progress=lambda done, total: seen.append((done, total)))
    assert archive == tmp_path / "new" / ARCHIVE
    assert names(tmp_path / "new") == [ARCHIVE]
    assert load_cifar(files, tmp_path / "new").num_classes == 4
    assert seen[-1] == (len(server.content), len(server.content))
    assert server.asked == 1


def test_get_leaves_what_is_there(server, files, tmp_path):
    path = write_archive(tmp_path / "cifar-100-python.tar.xz", files, CONTENTS)
    assert get(files, tmp_path) == path
    folder = write_folder(tmp_path, files, CONTENTS)
    assert get(files, tmp_path) == folder
    assert server.asked == 0


def test_a_broken_download_starts_again(server, files, tmp_path):
    (tmp_path / f"{ARCHIVE}.part").write_bytes(b"left by a killed process")
    server.cuts = (700, 500)
    get(files, tmp_path)
    assert server.asked == 3
    assert names(tmp_path) == [ARCHIVE]


def test_a_connection_that_keeps_breaking(server, files, tmp_path):
    server.cuts = (100, 100, 100)
    ended = f"the connection ended after 100 of {len(server.content)} bytes"
    with pytest.raises(DataError, match=rf"could not download from 127.0.0.1 \({ended}\)"):
        get(files, tmp_path)
    assert names(tmp_path) == []


def test_another_archive_is_refused_and_not_kept(server, files, tmp_path):
    server.content = server.content[:-1] + b"!"
    with pytest.raises(DataError, match="not the official archive"):
        get(files, tmp_path)
    assert names(tmp_path) == []


def test_more_bytes_than_an_archive_has(server, files, tmp_path, monkeypatch):
    monkeypatch.setattr("replenish.lab.data.download.MAX_ARCHIVE_BYTES", 1000)
    with pytest.raises(DataError, match="far more bytes than the archive has"):
        get(files, tmp_path)
    assert (server.asked, names(tmp_path)) == (1, [])


def test_errors_of_the_server_and_of_the_network(server, files, tmp_path):
    server.status = 404
    with pytest.raises(DataError, match=r"127.0.0.1 answered 404 Not Found"):
        get(files, tmp_path)
    with pytest.raises(DataError, match=r"could not download from 127.0.0.1 \(.*refused"):
        get(files, tmp_path, url="http://127.0.0.1:9/none.tar.gz")
    for url in ("http://example.org/x.tar.gz", "file:///etc/passwd", "ftp://example.org/x"):
        with pytest.raises(ValueError, match="url should be an address that begins with https://"):
            fetch(url, tmp_path / "x", "")
    assert names(tmp_path) == []
