"""`judge`: all findings on the records of a loader, for `audit` and for the command."""

from __future__ import annotations

from dataclasses import dataclass, replace

from replenish.auditing.claims import Claim
from replenish.auditing.coverage import coverage
from replenish.auditing.epochs import batch_sizes, repetition, shuffling
from replenish.auditing.labels import Labels, class_shares, label_mixing, label_values
from replenish.auditing.noise import gaps, noise
from replenish.auditing.ranks import all_equal, joined, one_dataset_known, ranks, ranks_of_unknown_data
from replenish.auditing.record import Record
from replenish.draws import Int64Array
from replenish.measure.findings import OK, Finding, Findings


@dataclass(frozen=True, repr=False)
class Audit(Findings):
    """The result of an audit. Print it, show it in a notebook, or take `to_dict()` for JSON.

    Attributes:
        subject: What was audited, in one line.
        findings: One for each question that could be asked.
    """

    subject: str
    findings: tuple[Finding, ...]

    def _title(self) -> str:
        return f"{self.subject}: {self.level}"


def judge(
    records: list[Record],
    claim: Claim,
    labels: Labels | None = None,
    *,
    elsewhere: Int64Array | None = None,
) -> tuple[Record, list[Finding]]:
    """Judge what a loader drew, question by question.

    Args:
        records: The loader's record, or one for each rank.
        claim: What the loader promises.
        labels: One label or length for each sample, or a function of an index or item.
        elsewhere: The positions of its dataset that other loaders of the run draw.

    Returns:
        The record of all ranks together, or rank 0's if their datasets may differ; and the findings.
    """
    findings: list[Finding | None] = []
    record = shuffled = records[0]
    if len(records) > 1:
        compared, together = joined(records)
        divided = ranks(compared, claim)
        if divided.level != OK and "shared" in divided.numbers and not one_dataset_known(records, claim):
            findings.append(ranks_of_unknown_data(divided))
        else:
            findings.append(divided)
            record = compared[0] if all_equal(compared) else together
            if compared is records:  # otherwise each rank has data of its own, and only shuffles those
                shuffled = record
            sampled = claim.replicas > 1 or compared is not records
            # The ranks together draw all samples, unless more ranks are on other machines.
            replicas = claim.replicas if claim.replicas > len(records) else 1
            # The joined batches do not follow the noise law, which is for one rank's batches: drop the config.
            claim = replace(claim, replicas=replicas, config=None, chosen=claim.chosen and not sampled)
    whole = coverage(record, claim, elsewhere, len(records))
    epochs = repetition(record, claim)
    findings += [whole, epochs, batch_sizes(record)]
    if "outside" in whole.numbers:  # the other questions cannot be answered
        return record, [found for found in findings if found is not None]
    findings.append(shuffling(shuffled, claim, epochs_differ=epochs.level == OK))
    if labels is not None:
        values = label_values(record, labels)
        findings += [class_shares(record, values, claim), label_mixing(record, values, claim.copies)]
    findings += [gaps(record), noise(record, claim)]
    return record, [found for found in findings if found is not None]


def subject(name: str, record: Record) -> str:
    """Return a line that says what was audited."""
    what, number = "items" if record.is_stream else "samples", len(record.passes)
    whole = len(record.whole_passes)
    passes = f"{number} {'epoch' if number == 1 else 'epochs'}"
    if whole < number:
        batches = sum(len(each.sizes) for each in record.passes)
        passes = f"{batches} batches in {number} {'pass' if number == 1 else 'passes'}, {whole} of them whole"
    return f"{name}, {record.num_samples} {what}, batches of {record.batch_size}, {passes}"
