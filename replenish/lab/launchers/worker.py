"""A process that executes one job, given as JSON, and tells of it in lines of JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from replenish.lab.jobs import Job


def main() -> int:
    """Execute the job of the first argument; the exit code is 0, 2 for an error, 128 + signal if stopped."""
    job = Job.from_dict(json.loads(sys.argv[1]))
    told = False

    def tell(event: dict[str, Any]) -> None:
        nonlocal told
        if os.environ.get("LOCAL_RANK", "0") != "0":  # another process of the same run, started by Fabric
            return
        told = told or event["event"] == "end"
        try:
            print(json.dumps(event), flush=True)
        except BrokenPipeError:
            # Whoever started this is gone; the last checkpoint is where the run will be gone on with.
            os._exit(1)

    try:
        result = job.run(tell)
    except (TypeError, ValueError, OSError) as error:
        tell({"event": "error", "message": str(error)})
        return 2
    except KeyboardInterrupt as stopped:
        tell({"event": "stopped", "message": str(stopped)})
        return 128 + getattr(stopped, "signal_number", 2)
    if not told:  # it had ended before
        tell({"event": "end", "result": result})
    return 0


if __name__ == "__main__":
    sys.exit(main())
