"""Settings and fixtures for all tests: one thread, a temporary cache, fixed examples, one site and one CIFAR-100."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import ways
from hypothesis import HealthCheck, settings

# Several processes of the test run share the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="replenish-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

# A shell that starts the tests in the background makes them ignore Ctrl-C, which some tests send.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests must not depend on luck or on the machine. `--hypothesis-profile=default` tries other examples.
settings.register_profile("every time", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("every time")

SKIPPED = pytest.StashKey[set[Path]]()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Return the folder of the documentation, built once for all processes of the test run."""
    pytest.importorskip("sphinx", reason="the site needs the extra `docs`")
    pytest.importorskip("furo", reason="the site needs the extra `docs`")
    from filelock import FileLock
    from site_pages import DOCS, build_site

    built = _of_all_processes(tmp_path_factory, request) / "site-is-built"
    with FileLock(f"{built}.lock"):
        if not built.exists():
            build_site()
            built.touch()
    return DOCS / "_build" / "html"


@pytest.fixture(scope="session")
def real_cifar100(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Return the folder of the real files, unpacked once for all processes: reading the archive takes ten seconds."""
    from filelock import FileLock

    from replenish.lab.data.cifar import CIFAR100, find, read_verified

    source = find(CIFAR100)
    if source is None:
        pytest.skip("the real CIFAR-100 is not in REPLENISH_DATA")
    folder = _of_all_processes(tmp_path_factory, request) / CIFAR100.folder
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            contents = read_verified(CIFAR100, source)
            folder.mkdir()
            for name, content in contents.items():
                (folder / name).write_bytes(content)
    return folder.parent


def _of_all_processes(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Return a folder that all processes of the test run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if hasattr(request.config, "workerinput") else base


@pytest.fixture(scope="module", autouse=True)
def _rows_that_a_file_names_are_asserted(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a file that names a row of `ways.WAYS` without asserting it in a test."""
    ways.ASSERTED.clear()
    yield
    options = request.config.option
    if options.keyword or options.markexpr or any("::" in argument for argument in request.config.args):
        return  # only some of the file's tests were run
    if request.session.testsfailed or request.node.path in request.config.stash.get(SKIPPED, set()):
        return
    assert ways.named_in(request.node.path) <= ways.ASSERTED, "put these rows into exact, refused or unsupported"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember the files that had a test skipped."""
    report = yield
    if report.skipped:
        item.config.stash.setdefault(SKIPPED, set()).add(item.path)
    return report
