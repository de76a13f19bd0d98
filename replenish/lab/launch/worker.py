"""A process that executes one job, given as JSON; how it goes is told by the run's folder."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from replenish.lab.jobs import job_from
from replenish.lab.launch.progress import tell_progress

#: What gloo and NCCL, which connect the processes of a run, say when one of them is gone.
SIGNS_OF_LOSS = ("gloo/transport", "Connection closed by peer", "Connection reset by peer", "ncclRemoteError")


def main() -> int:
    """Execute the job of the first argument; the exit code is 0, 2 for an error, 128 + signal if stopped."""
    job = job_from(json.loads(sys.argv[1]))
    tell, parent = tell_progress(job.folder), os.getppid()

    def watch(event: dict[str, Any]) -> None:
        if os.getppid() != parent:
            # Whoever started this is gone. A command's processes are ended; a training continues from its checkpoint.
            if event["event"] == "beat":
                raise SystemExit(1)
            os._exit(1)
        tell(event)

    try:
        job.run(watch)
    except (TypeError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except RuntimeError as error:
        if (lost := lost_process(error)) is None:
            raise
        print(lost, file=sys.stderr)
        return 1
    except KeyboardInterrupt as stopped:
        tell({"event": "stopped", "message": str(stopped)})
        return 128 + getattr(stopped, "signal_number", 2)
    return 0


def lost_process(error: RuntimeError) -> str | None:
    """Return a sentence on an error that means that another process of the run is gone, or None for any other error."""
    said = str(error)
    if not any(sign in said for sign in SIGNS_OF_LOSS):
        return None
    reason = said.partition("\n")[0].partition(". ")[0]
    if reason.startswith("["):  # the place in gloo's source
        reason = reason.partition("] ")[2]
    return f"another process of the run was lost ({reason:.100}); give the same command again to go on"


if __name__ == "__main__":
    sys.exit(main())
