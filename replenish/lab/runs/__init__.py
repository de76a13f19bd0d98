"""Run folders. Only this package knows their files, and whether a run has ended.

    config.json              the config of the run
    metrics.jsonl            one line per effective epoch
    checkpoint.pt            the state of the run; until it ends also checkpoint-previous.pt, the one before
    result.json              how it ended; a run without it has not ended

Each config has a folder, named after it, with a folder for each seed. Every release reads the folders of all earlier
ones.
"""

from replenish.lab.runs.folder import RunFolder, RunRecord, finite, folder_of, read_run, read_runs

__all__ = ["RunFolder", "RunRecord", "finite", "folder_of", "read_run", "read_runs"]
