"""The command that runs the second study: `python -m study.second K --jobs 2`."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from replenish.lab.jobs import Job
from replenish.lab.launch import launch
from study.second.arms import PARTS


def main(arguments: list[str] | None = None) -> None:
    """Run the named parts. Finished runs are kept, stopped runs resume."""
    parser = argparse.ArgumentParser(prog="python -m study.second", description=main.__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--runs", type=Path, default=Path("study/records"), help="the folder of the records")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, one thread each")
    options = parser.parse_args(arguments)
    command = shlex.join(["python", "-m", "study.second", *(sys.argv[1:] if arguments is None else arguments)])
    for name in options.parts:
        jobs = PARTS[name].jobs(options.runs / name, command)
        waiting = [job for job in jobs if job.ended() is None]
        print(f"part {name}: {len(jobs) - len(waiting)} of {len(jobs)} runs have ended", flush=True)

        def report(place: int, event: dict[str, object], waiting: list[Job] = waiting) -> None:
            if event["event"] == "end":
                print(f"ended: {waiting[place].folder}", flush=True)

        launch(waiting, options.jobs, report)


if __name__ == "__main__":
    main()
