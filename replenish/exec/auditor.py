"""The recorder of this process, for `replenish.exec.hook`."""

from __future__ import annotations

import functools

from replenish.exec.audit_task import AuditTask
from replenish.exec.recorder import Recorder
from replenish.torch.loader_hook import LoaderHook


@functools.cache
def process_auditor(hook: LoaderHook | None = None) -> Recorder:
    """Return the recorder of this process, as its environment says.

    Args:
        hook: The hook by which loaders get an order, if they do: the recorder must see what they draw then.
    """
    task = AuditTask.from_environment()
    assert task is not None
    return Recorder(task, hook)
