"""The process of one run: `python -m replenish.lab.launch.worker`, with the job as JSON.

It writes the run's events to its standard output, each as a line of JSON. Other output is discarded.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from replenish.lab.jobs import job_from

#: What gloo and NCCL, which connect the processes of a run, report when one of them is gone.
SIGNS_OF_LOSS = ("gloo/transport", "Connection closed by peer", "Connection reset by peer", "ncclRemoteError")


def main() -> int:
    """Run the job of the first argument; the exit code is 0, 1 or 2 for an error, or 128 + signal if stopped."""
    job, parent = job_from(json.loads(sys.argv[1])), os.getppid()
    # From here on, only events reach the pipe: the user's code may print, and that output is discarded.
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def watch(event: dict[str, Any]) -> None:
        if os.getppid() != parent:
            # The process that started this one is gone. SystemExit lets a command's job end the command's processes; a
            # training has nothing to end, and can resume.
            if event["event"] == "beat":
                raise SystemExit(1)
            os._exit(1)
        if event["event"] != "beat":
            events.write(json.dumps(event) + "\n")

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
        watch({"event": "stopped", "message": str(stopped)})
        return 128 + getattr(stopped, "signal_number", 2)
    return 0


def lost_process(error: RuntimeError) -> str | None:
    """Return a sentence if the error means that another process of the run is gone, else None."""
    message = str(error)
    if not any(sign in message for sign in SIGNS_OF_LOSS):
        return None
    reason = message.partition("\n")[0].partition(". ")[0]
    if reason.startswith("["):  # the place in gloo's source
        reason = reason.partition("] ")[2]
    return f"another process of the run was lost ({reason:.100}); give the same command again to resume"


if __name__ == "__main__":
    sys.exit(main())
