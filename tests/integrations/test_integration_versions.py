"""Frameworks with which a training would see other batches are refused by name."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable

import pytest

from replenish.integrations.versions import refuse_older


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda version: monkeypatch.setattr(importlib.metadata, "version", lambda package: version)


@pytest.mark.parametrize("version", ["3.7", "3.7.0", "3.10.0", "4.0.0.dev1"])
def test_the_lowest_and_later_ones_are_taken(version: str, install: Callable[[str], None]) -> None:
    install(version)
    refuse_older("keras", (3, 7))


@pytest.mark.parametrize("version", ["3.6.0", "2.15.0", "3.6.9rc1"])
def test_older_ones_are_refused_by_name(version: str, install: Callable[[str], None]) -> None:
    install(version)
    said = rf"keras should be 3.7 or later .* but {version} is installed: pip install 'replenish\[keras\]'"
    with pytest.raises(ImportError, match=said):
        refuse_older("keras", (3, 7))


def test_what_has_no_version_is_taken() -> None:
    refuse_older("a-framework-that-is-not-installed", (3, 7))
