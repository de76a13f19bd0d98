"""Run folders: only this room knows their files, and whether a run has ended.

    config.json              the config of the run
    metrics.jsonl            one line per effective epoch
    checkpoint.pt            the state of the run; until it ends also checkpoint-previous.pt, the one before
    result.json              how it ended; a run without it has not ended

A folder is named by its config and contains one folder per seed. What a release wrote, all later ones read.
"""

from replenish.lab.runs.folder import RunFolder, RunRecord, finite, folder_of, read_run, read_runs

__all__ = ["RunFolder", "RunRecord", "finite", "folder_of", "read_run", "read_runs"]
