"""What holds for all tests: one thread, a cache that ends with them, the same examples every time, one site."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Two cores are shared with another worker of the test run.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="replenish-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

# A shell that starts them in the background lets them ignore Ctrl-C, and tests press it.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Whether the tests pass may depend neither on luck nor on the machine; `--hypothesis-profile=default` looks further.
settings.register_profile("every time", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("every time")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The documentation, built once for all processes of the test run."""
    pytest.importorskip("sphinx", reason="the site needs the extra `docs`")
    pytest.importorskip("furo", reason="the site needs the extra `docs`")
    from filelock import FileLock
    from site_pages import build_site

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if hasattr(request.config, "workerinput") else base) / "site"
    with FileLock(f"{folder}.lock"):
        return folder / "html" if folder.exists() else build_site(folder)
