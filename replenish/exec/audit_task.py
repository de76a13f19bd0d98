"""What a run's environment says if the draws of its loaders are to be recorded, for an audit or for themselves."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from replenish.exec.environment import RECORD_VARIABLE, VARIABLE, environment_with


@dataclass(frozen=True)
class Stop:
    """Where a run is to be stopped, for the test of its resume."""

    batch: int  # after so many training batches
    kill: bool  # by SIGKILL, once there is a checkpoint; else by SIGTERM, whatever there is
    checkpoints: tuple[str, ...]  # patterns of the checkpoints' names, below the working folder


@dataclass(frozen=True)
class AuditTask:
    """The recording of a run's draws."""

    records: str  # the folder in which every process of the run writes what its loaders draw
    epochs: int | None = None  # after how many epochs of a loader the script ends; None lets it run to its own end
    steps: int | None = None  # after how many training batches the script ends
    facts: bool = True  # whether labels and what the samplers promise are recorded too, for an audit
    stop: Stop | None = None

    def environment(self, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a process whose loaders are recorded, as are those of all that it starts."""
        return environment_with({"audit": asdict(self)}, inherited)

    def beside(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return an environment with another request, in which loaders are recorded as well."""
        return {**environment, RECORD_VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def from_environment(cls) -> AuditTask | None:
        """Return the task in this process's environment; None if there is none."""
        if RECORD_VARIABLE in os.environ:
            fields = json.loads(os.environ[RECORD_VARIABLE])
        else:
            fields = json.loads(os.environ[VARIABLE]).get("audit")
        if fields is None:
            return None
        stop = fields.pop("stop", None)
        return cls(**fields, stop=None if stop is None else Stop(**{**stop, "checkpoints": tuple(stop["checkpoints"])}))
