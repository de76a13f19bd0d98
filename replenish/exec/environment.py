"""What a run's environment says: which order its loaders get, and where they are recorded; or an `AuditTask`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: The variable that holds an `Assignment` or an `AuditTask`, as JSON; `site/sitecustomize.py` looks for it too.
VARIABLE = "REPLENISH_EXEC"
#: The variable by which the first Python process of a run tells those below it which it is; set by `sitecustomize.py`.
FIRST_PROCESS = "REPLENISH_EXEC_FIRST"
#: The folder that has the hook which every Python process imports at its start.
SITE = Path(__file__).parent / "site"


def environment_with(told: dict[str, Any], inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment in which every Python process has the hook, and is told so."""
    found = dict(os.environ if inherited is None else inherited)
    found.pop(FIRST_PROCESS, None)  # of a run around this one
    paths = [str(SITE), *(path for path in [found.get("PYTHONPATH", "")] if path)]
    return {**found, VARIABLE: json.dumps(told), "PYTHONPATH": os.pathsep.join(paths)}


@dataclass(frozen=True)
class Assignment:
    """The order of a run."""

    order: str  # a name of `replenish.orders.registry.ORDERS`
    seed: int  # chooses the draws
    records: str  # the folder that says what became of the loaders
    # What the order takes beside, as JSON can hold it: an array by the .npy file that has it.
    options: dict[str, Any] = field(default_factory=dict)
    # Since when other runs have been writing files, and until when: none of those should be read.
    others: tuple[float, float] | None = None

    def environment(self, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a process that is to use the order, and all that it starts."""
        return environment_with(asdict(self), inherited)

    @classmethod
    def from_environment(cls) -> Assignment:
        """Return what `environment` told this process."""
        return cls(**json.loads(os.environ[VARIABLE]))
