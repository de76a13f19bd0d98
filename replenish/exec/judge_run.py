"""The audit of a run: every question asked of what its loaders drew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from replenish.auditing import Audit, Finding
from replenish.auditing.findings import WARNING
from replenish.auditing.judge import judge, subject
from replenish.auditing.leak import elsewhere, leak
from replenish.auditing.record import Record
from replenish.exec.run_draws import ProcessDraws, RecordedLoader, ranks_of, read_run


def judge_run(folder: Path) -> tuple[list[tuple[str, Audit]], list[str]]:
    """Return the audits of the training loaders of a run, by name, and lines on the others."""
    return judge_processes(read_run(folder))


def judge_processes(run: list[ProcessDraws]) -> tuple[list[tuple[str, Audit]], list[str]]:
    """Return the audits of the training loaders of a run, by name, and lines on the others."""
    trained = ranks_of(run)
    others = [loader for loader in run[0].loaders if not loader.training and loader.evaluations] if run else []
    evaluated = [(_name(loader), loader.record(loader.evaluations)) for loader in others]
    audits = []
    for number, ranks in enumerate(trained):
        rest = [each[0].record(each[0].training) for each in trained if each is not ranks]
        audits.append((f"loader {number + 1}: {_name(ranks[0])}", _audit(ranks, rest, evaluated)))
    why = "not audited, its passes are those of an evaluation: gradients were off, or no optimizer made a step"
    return audits, [f"{name}: {why}" for name, _ in evaluated]


def _audit(ranks: list[RecordedLoader], rest: list[Record], evaluated: list[tuple[str, Record]]) -> Audit:
    first = ranks[0]
    records = [each.record(each.training) for each in ranks]
    drawn_elsewhere = elsewhere(records[0], [*rest, *(record for _, record in evaluated)])
    labels = first.arrays.get("labels") if len({_key(each) for each in ranks}) == 1 else None
    claim = first.claim()
    if len(records) > 1 and claim.replicas > 1:
        rank_count = len(records)
        claim = replace(claim, replicas=rank_count)
    record, findings = judge(records, claim, labels, elsewhere=drawn_elsewhere)
    findings += [Finding(**each) for loader in ranks for each in loader.findings]
    for name, other in evaluated:
        found = leak(record if record.identity else records[0], other, f"an evaluation ({name})", WARNING)
        if found is not None and found.level == WARNING:
            text = (
                f"{found.numbers['shared']} of the {found.numbers['samples']} samples of an evaluation ({name}) are "
                f"trained with too: a leak, unless it measures the training."
            )
            findings.append(replace(found, sentence=text))
    name = first.promise["name"] + (f" on {len(ranks)} ranks" if len(ranks) > 1 else "")
    return Audit(subject(name, record), tuple(findings))


def _key(loader: RecordedLoader) -> Any:
    samples = loader.arrays.get("samples")
    return None if samples is None else np.asarray(samples).tobytes()


def _name(loader: RecordedLoader) -> str:
    number, size = loader.facts["num_samples"], loader.facts["batch_size"]
    sizes = [f"N = {number:,}"] if number is not None else []
    return ", ".join([loader.facts["dataset"], *sizes, *([f"B = {size:,}"] if size else [])])
