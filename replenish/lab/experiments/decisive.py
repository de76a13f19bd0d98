"""The cheapest experiment that settles whether the paper's 7 points are there, at its own scale: six runs on one GPU.

Rows 3 and 4 of table 3 and nothing else: WRN-28-10 on CIFAR-100, the same schedule, the same initial weights, SRS
against reshuffling. The clean loss is measured besides, so that figure 2 is answered too. `docs/replication.md` has the
power calculation that gives the number of pairs, and the rule by which it is settled, before any such run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from replenish.lab.config import RunConfig

#: How many pairs of runs are stated; seeds 0, 1 and 2.
PAIRS = 3
#: Tests between the first epoch and the last decide nothing, and cost.
_EVERY = 10


def decisive(order: str) -> RunConfig:
    """Return one side of the comparison: the paper's WRN-28-10 with its own schedule."""
    return RunConfig(order=order, test_every=_EVERY, clean_every=_EVERY)


EXPERIMENTS: dict[str, Callable[[], RunConfig]] = {
    f"decisive/{order}": partial(decisive, order) for order in ("reshuffling", "srs")
}
