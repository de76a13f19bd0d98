"""The environment of a run, which holds an `OrderRequest` for its loaders, an `AuditTask`, or both."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: The variables that hold an `OrderRequest` and an `AuditTask` as JSON; `site/sitecustomize.py` looks for them too.
VARIABLE, RECORD_VARIABLE = "REPLENISH_EXEC", "REPLENISH_RECORD"
#: The variable with the process id of a run's first Python process, which `sitecustomize.py` sets there.
FIRST_PROCESS = "REPLENISH_EXEC_FIRST"
#: The folder of `sitecustomize.py`, which every Python process of a run imports at its start.
SITE = Path(__file__).parent / "site"


@dataclass(frozen=True)
class OrderRequest:
    """The order that the loaders of a run get."""

    order: str  # a name of `replenish.orders.registry.ORDERS`
    seed: int  # chooses the draws
    records: str  # the folder in which the processes write what happened to their loaders
    # The order's options as JSON can hold them: for an array, the path of its .npy file.
    options: dict[str, Any] = field(default_factory=dict)
    everything: bool = False  # whether training loaders that do not shuffle get the order too
    first_epoch: int = 0  # the epoch of the first pass over each loader

    @classmethod
    def from_environment(cls) -> OrderRequest:
        """Return the request in this process's environment."""
        return cls(**json.loads(os.environ[VARIABLE]))


@dataclass(frozen=True)
class AuditTask:
    """What to record of a run's loaders, and when to end the run."""

    records: str  # the folder in which every process of the run writes what its loaders draw
    epochs: int | None = None  # after how many epochs of a loader the script ends; None lets it run to its own end
    steps: int | None = None  # after how many training batches the script ends
    facts: bool = True  # whether to record labels and the claims of the samplers too, for an audit
    # The rest is for the test of a resume.
    stop: int | None = None  # after how many training batches the run is stopped
    kill: bool = False  # whether by SIGKILL, as soon as there is a checkpoint; otherwise by SIGTERM
    checkpoints: tuple[str, ...] = ()  # patterns of the checkpoints' paths below the working folder

    @classmethod
    def from_environment(cls) -> AuditTask:
        """Return the task in this process's environment."""
        return cls(**json.loads(os.environ[RECORD_VARIABLE]))


def run_environment(order: OrderRequest | None = None, task: AuditTask | None = None) -> dict[str, str]:
    """Return an environment in which the loaders of a process and its children get an order, or are recorded."""
    outer = (VARIABLE, RECORD_VARIABLE, FIRST_PROCESS)  # set if this process is itself part of a run
    found = {name: value for name, value in os.environ.items() if name not in outer}
    for variable, request in ((VARIABLE, order), (RECORD_VARIABLE, task)):
        if request is not None:
            found[variable] = json.dumps(asdict(request))
    found["PYTHONPATH"] = os.pathsep.join([str(SITE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return found
