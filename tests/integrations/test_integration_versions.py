"""Frameworks with which a training would see other batches are refused by name."""

from __future__ import annotations

import pytest

from replenish.integrations.versions import refuse_older


@pytest.mark.parametrize("installed", ["3.7", "3.7.0", "3.10.0", "4.0.0.dev1"])
def test_the_lowest_and_later_ones_are_taken(installed: str) -> None:
    refuse_older("keras", installed, (3, 7))


@pytest.mark.parametrize("installed", ["3.6.0", "2.15.0", "3.6.9rc1"])
def test_older_ones_are_refused_by_name(installed: str) -> None:
    said = rf"keras should be 3.7 or later .* but {installed} is installed: pip install 'replenish\[keras\]'"
    with pytest.raises(ImportError, match=said):
        refuse_older("keras", installed, (3, 7))
