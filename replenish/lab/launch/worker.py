"""The process of one run: `python -m replenish.lab.launch.worker`, with the job as JSON.

It writes the run's events to its standard output, one line of JSON each. Nothing else can be written there.
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
    # A network of the user's may print: that goes nowhere, and only the events go to the pipe.
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def watch(event: dict[str, Any]) -> None:
        if os.getppid() != parent:
            # The process that started this one is gone. A command's processes are ended; a training can resume later.
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
    """Return a sentence for an error that means that another process of the run is gone; None for any other error."""
    message = str(error)
    if not any(sign in message for sign in SIGNS_OF_LOSS):
        return None
    reason = message.partition("\n")[0].partition(". ")[0]
    if reason.startswith("["):  # the place in gloo's source
        reason = reason.partition("] ")[2]
    return f"another process of the run was lost ({reason:.100}); give the same command again to resume"


if __name__ == "__main__":
    sys.exit(main())
