"""What the environment of a run says: an `OrderRequest` for its loaders, or an `AuditTask`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: The variable that holds an `OrderRequest` or an `AuditTask`, as JSON; `site/sitecustomize.py` looks for it too.
VARIABLE = "REPLENISH_EXEC"
#: The variable that holds an `AuditTask` beside another request, as JSON.
RECORD_VARIABLE = "REPLENISH_RECORD"
#: The variable by which the first Python process of a run names itself to those below it; set by `sitecustomize.py`.
FIRST_PROCESS = "REPLENISH_EXEC_FIRST"
#: The folder that has the hook which every Python process imports at its start.
SITE = Path(__file__).parent / "site"


def environment_with(request: dict[str, Any], inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment in which every Python process has the hook and the request."""
    found = dict(os.environ if inherited is None else inherited)
    found.pop(FIRST_PROCESS, None)  # of a run around this one
    paths = [str(SITE), *(path for path in [found.get("PYTHONPATH", "")] if path)]
    return {**found, VARIABLE: json.dumps(request), "PYTHONPATH": os.pathsep.join(paths)}


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

    def environment(self, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a process that is to use the order, as will all that it starts."""
        return environment_with(asdict(self), inherited)

    @classmethod
    def from_environment(cls) -> OrderRequest:
        """Return the request in this process's environment."""
        return cls(**json.loads(os.environ[VARIABLE]))
