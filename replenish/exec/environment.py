"""What a run's environment says: which order its loaders get, and where they are recorded."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: The variable that holds an `Assignment`, as JSON; `site/sitecustomize.py` looks for it too.
VARIABLE = "REPLENISH_EXEC"
#: The folder that has the hook which every Python process imports at its start.
SITE = Path(__file__).parent / "site"


@dataclass(frozen=True)
class Assignment:
    """The order of a run.

    Attributes:
        order: A name of `replenish.orders.registry.ORDERS`.
        seed: Chooses the draws.
        options: What the order takes beside, as JSON can hold it.
        records: The folder that says what became of the loaders.
    """

    order: str
    seed: int
    records: str
    options: dict[str, Any] = field(default_factory=dict)

    def environment(self, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a process that is to use the order, and all that it starts."""
        found = dict(os.environ if inherited is None else inherited)
        paths = [str(SITE), *(path for path in [found.get("PYTHONPATH", "")] if path)]
        return {**found, VARIABLE: json.dumps(asdict(self)), "PYTHONPATH": os.pathsep.join(paths)}

    @classmethod
    def from_environment(cls) -> Assignment:
        """Return what `environment` told this process."""
        return cls(**json.loads(os.environ[VARIABLE]))
