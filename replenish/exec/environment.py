"""What the environment of a run says: an `OrderRequest` for its loaders, an `AuditTask`, or both."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: The variables that hold an `OrderRequest` and an `AuditTask` as JSON; `site/sitecustomize.py` looks for them too.
VARIABLE, RECORD_VARIABLE = "REPLENISH_EXEC", "REPLENISH_RECORD"
#: The variable by which the first Python process of a run names itself to those below it; set by `sitecustomize.py`.
FIRST_PROCESS = "REPLENISH_EXEC_FIRST"
#: The folder that has the hook which every Python process imports at its start.
SITE = Path(__file__).parent / "site"


@dataclass(frozen=True)
class OrderRequest:
    """The order of a run."""

    order: str  # a name of `replenish.orders.registry.ORDERS`
    seed: int  # chooses the draws
    records: str  # the folder in which the processes write what happened to their loaders
    # The order's options, as JSON can hold them: an array by the .npy file that has it.
    options: dict[str, Any] = field(default_factory=dict)
    everything: bool = False  # whether training loaders that do not shuffle get the order as well
    first_epoch: int = 0  # the epoch of the first pass over each loader

    @classmethod
    def from_environment(cls) -> OrderRequest:
        """Return the request in this process's environment."""
        return cls(**json.loads(os.environ[VARIABLE]))


@dataclass(frozen=True)
class AuditTask:
    """The recording of what a run's loaders draw."""

    records: str  # the folder in which every process of the run writes what its loaders draw
    epochs: int | None = None  # after how many epochs of a loader the script ends; None lets it run to its own end
    steps: int | None = None  # after how many training batches the script ends
    facts: bool = True  # whether labels and what the samplers promise are recorded too, for an audit
    # For the test of a resume: after how many training batches the run is stopped; by SIGKILL once there is a
    # checkpoint, or by SIGTERM whatever there is; and patterns of the checkpoints' names, below the working folder.
    stop: int | None = None
    kill: bool = False
    checkpoints: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls) -> AuditTask:
        """Return the task in this process's environment."""
        return cls(**json.loads(os.environ[RECORD_VARIABLE]))


def run_environment(order: OrderRequest | None = None, task: AuditTask | None = None) -> dict[str, str]:
    """Return the environment of a process whose loaders get an order, or are recorded, as are those of its children."""
    around = (VARIABLE, RECORD_VARIABLE, FIRST_PROCESS)  # of a run around this one
    found = {name: value for name, value in os.environ.items() if name not in around}
    for variable, request in ((VARIABLE, order), (RECORD_VARIABLE, task)):
        if request is not None:
            found[variable] = json.dumps(asdict(request))
    found["PYTHONPATH"] = os.pathsep.join([str(SITE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return found
