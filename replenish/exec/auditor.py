"""The recorder of this process, for `replenish.exec.hook`."""

from __future__ import annotations

import functools

from replenish.exec.audit_task import AuditTask
from replenish.exec.recorder import Recorder


@functools.cache
def process_auditor() -> Recorder:
    """Return the recorder of this process, as its environment says."""
    task = AuditTask.from_environment()
    assert task is not None
    return Recorder(task)
