"""Is figure 2's lower training loss a property of the network, or of how the order measures it?

The online loss of an image is measured when the order visits it. The more regular the visits, the longer ago the last
visit is on average, so for equal weights reshuffling has the highest online loss. The clean loss is measured on all
images at once, with dropout off, so it does not depend on the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from replenish.lab.show import NOTHING, Column, Table
from replenish.lab.statistics import Difference, paired_difference
from replenish.lab.verdict import signed
from study.replication.evidence import ArmRuns, Evidence
from study.replication.plan import PRIMARY
from study.replication.text import interval_words, with_decimals

ARMS = (PRIMARY.first, PRIMARY.second)
_loss = partial(with_decimals, decimals=4)
#: The learning rate first drops at 36; 35 is the last measurement before it.
LAST_LARGE, EPOCHS = 35, (20, 35, 60)


@dataclass(frozen=True)
class LossDifference:
    """SRS minus reshuffling at an effective epoch: the losses and the error on the training images.

    `bias` is the online loss minus the clean loss: the order's effect on the measurement.
    """

    epoch: int
    online: Difference | None
    clean: Difference | None
    bias: Difference | None
    clean_error: Difference | None


def loss_differences(evidence: Evidence) -> tuple[LossDifference, ...]:
    """Return the paired differences at the epochs of the table."""
    found = []
    for epoch in EPOCHS:
        online, clean, error = (_by_arm(evidence, name, epoch) for name in ("train_loss", "clean_loss", "clean_error"))
        bias = [
            {seed: one[seed] - other[seed] for seed in one.keys() & other.keys()}
            for one, other in zip(online, clean, strict=True)
        ]
        effects = [paired_difference(*each) for each in (online, clean, bias, error)]
        found.append(LossDifference(epoch, *(None if effect.error is None else effect for effect in effects)))
    return tuple(found)


def losses_sentence(evidence: Evidence) -> str:
    """Return a sentence: whether the lower training loss of figure 2 is seen, online and clean."""
    row = next(row for row in loss_differences(evidence) if row.epoch == LAST_LARGE)
    if row.online is None or row.clean is None:
        return "Not run yet: fewer than two pairs have ended."
    online, clean = (_direction(effect) for effect in (row.online, row.clean))
    found = (
        f"At effective epoch {row.epoch}, the last measurement before the learning rate drops, the loss of SRS was "
        f"{online} online ({_with_interval(row.online)}) and {clean} clean ({_with_interval(row.clean)}), "
        f"n = {row.online.n} pairs, with 95 % intervals."
    )
    if row.online.n < PRIMARY.seeds:
        return f"So far, with {row.online.n} of {PRIMARY.seeds} pairs: {found} Nothing is concluded before the last."
    if online != "lower":
        return f"{found} So the lower loss while training that figure 2 shows for SRS is not seen in this setting."
    if clean == "lower":
        return f"{found} So here a lower training loss is in the network, not in the measuring alone."
    return (
        f"{found} So here a lower training loss, as in figure 2, is the order's artefact: it is seen while training "
        "and is not seen in the network."
    )


def losses_table(evidence: Evidence) -> Table:
    """Return the table of SRS minus reshuffling: the two training losses and the clean error."""
    columns = (
        Column("effective epoch", lambda row: str(row.epoch)),
        Column("n", lambda row: str(row.online.n if row.online else 0)),
        Column("online loss", lambda row: _with_interval(row.online), "95 % interval"),
        Column("clean loss", lambda row: _with_interval(row.clean), "95 % interval"),
        Column("online minus clean", lambda row: _with_interval(row.bias), "95 % interval"),
        Column(
            "clean error", lambda row: NOTHING if row.clean_error is None else signed(row.clean_error.mean), "points"
        ),
    )
    return Table("losses", "", columns, [(str(row.epoch), row) for row in loss_differences(evidence)])


def metric_by_epoch(arm: ArmRuns, name: str) -> dict[int, dict[int, float]]:
    """Return a metric of the finished runs by effective epoch and seed."""
    found: dict[int, dict[int, float]] = {}
    for seed, run in arm.runs.items():
        for line in run.metrics if run.status == "finished" else ():
            if line.get(name) is not None:
                found.setdefault(line["epoch"], {})[seed] = line[name]
    return dict(sorted(found.items()))


def _by_arm(evidence: Evidence, name: str, epoch: int) -> list[dict[int, float]]:
    return [metric_by_epoch(evidence.arms[arm], name).get(epoch, {}) for arm in ARMS]


def _direction(effect: Difference) -> str:
    interval = effect.interval()
    if interval is None or interval.low <= 0 <= interval.high:
        return "neither lower nor higher"
    return "lower" if interval.high < 0 else "higher"


def _with_interval(effect: Difference | None) -> str:
    if effect is None:
        return NOTHING
    return f"{_loss(effect.mean)}, {interval_words(effect, show=_loss)}"
