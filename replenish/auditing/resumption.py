"""Compare what a resumed training draws with what the uninterrupted one draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from replenish.draws import Int64Array
from replenish.measure.findings import FAULT, OK, WARNING, Finding

Epochs = Sequence[Sequence[Int64Array]]  # for each epoch its batches, over all processes


def compare_resumed(
    name: str,
    reference: Epochs,
    stopped: Epochs,
    resumed: Epochs,
    saved: int,
    *,
    limited: bool = False,
    shares: Sequence[Sequence[Int64Array]] = (),
) -> Finding:
    """Compare the batches after a resume with those of an uninterrupted run.

    Args:
        name: The finding's name: how the run was stopped.
        reference: The batches of the uninterrupted run.
        stopped: The batches of the run that was stopped.
        resumed: The batches after the resume.
        saved: How many batches were trained when the checkpoint was written.
        limited: Whether a limit on batches ended the runs, so that the resumed one may have more or fewer.
        shares: The batches of each process in its first epoch after the resume.
    """
    whole, before, after = (_batches(each) for each in (reference, stopped, resumed))
    expected = whole[saved:]
    if limited:
        after = after[: len(expected)]
    equal = [_same(one, other) for one, other in zip(expected, after, strict=False)]
    numbers: dict[str, int | float] = {"saved": saved, "expected": len(expected), "resumed": len(after)}
    if not after:
        return Finding(name, FAULT, f"Resumed at step {saved}, it trained with no batch.", numbers)
    if all(equal) and (limited or len(expected) == len(after)):
        text = f"Exact: the {len(after)} batches from step {saved} on equal those of the uninterrupted run."
        return Finding(name, OK, text, numbers)
    steps = [_step_of(each, whole, saved) for each in shares]
    if len(set(steps)) > 1 and None not in steps:
        places = ", ".join(f"process {rank} at step {step}" for rank, step in enumerate(steps))
        text = (
            f"The processes resumed at different steps: {places} (the checkpoint is of step {saved}). Let all of them "
            f"read the checkpoint before one of them saves again."
        )
        return Finding(name, FAULT, text, numbers)
    first = next((place for place, same in enumerate(equal) if not same), len(equal))
    start, end = _epoch_of(reference, saved)
    # The interrupted epoch: its batches before the checkpoint, and the first epoch after the resume.
    seeded = all(_same(one, other) for one, other in zip(whole, before, strict=False))
    rest = resumed[0]
    seen = _count((whole if seeded else before)[start:saved])
    if limited and len(resumed) == 1:  # both runs may end within the epoch: a missing sample need not be skipped
        repeats, skips = (seen & _count(rest)).total(), 0
    else:
        got, wanted = seen + _count(rest), _count(whole[start:end])
        repeats, skips = (got - wanted).total(), (wanted - got).total()
    numbers |= {"repeats": repeats, "skips": skips, "first_difference": saved + first}
    where = f"from step {saved + first}"
    if repeats or skips:
        text = f"Repeats {repeats} samples and skips {skips} of the interrupted epoch, {where}"
        return Finding(name, FAULT, f"{text} (the checkpoint is of step {saved}).", numbers)
    if not seeded:
        text = (
            "The interrupted epoch has each of its samples as often as it should. Two runs of the script draw "
            "different batches, so more cannot be compared: seed it."
        )
        return Finding(name, WARNING, text, numbers)
    if first >= end - saved and first < len(equal):
        text = f"The interrupted epoch is exact; later epochs have another order, {where}."
        return Finding(name, WARNING, text, numbers)
    if first == len(equal):
        text = f"It trained with {len(after)} batches, where {len(expected)} were left, all of them equal so far."
        return Finding(name, WARNING, text, numbers)
    text = f"The interrupted epoch has each of its samples as often as it should, in another order {where}."
    return Finding(name, WARNING, text, numbers)


def _batches(epochs: Epochs) -> list[Int64Array]:
    return [batch for epoch in epochs for batch in epoch]


def _same(one: Int64Array, other: Int64Array) -> bool:
    """Return whether two batches have the same samples, in any order: processes may divide them differently."""
    return len(one) == len(other) and np.array_equal(np.sort(one), np.sort(other))


def _step_of(shares: Sequence[Int64Array], whole: Sequence[Int64Array], near: int) -> int | None:
    """Return the step nearest to `near` from which the batches contain a process's shares; None if there is none."""

    def are_of(step: int) -> bool:
        batches = whole[step : step + len(shares)]
        return all(np.isin(share, batch).all() for share, batch in zip(shares, batches, strict=True))

    steps = range(len(whole) - len(shares) + 1) if shares else ()
    return min(filter(are_of, steps), key=lambda step: abs(step - near), default=None)


def _epoch_of(epochs: Epochs, step: int) -> tuple[int, int]:
    """Return the first step of the epoch that has a step, and the first step of the next epoch."""
    start = 0
    for epoch in epochs:
        if step < start + len(epoch):
            return start, start + len(epoch)
        start += len(epoch)
    return start, start


def _count(batches: Sequence[Int64Array]) -> Counter[int]:
    return Counter(np.concatenate(batches).tolist()) if len(batches) else Counter()
