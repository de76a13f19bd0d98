"""Runs on disk: the only room that knows their folders, what is in them, and whether a run has ended.

    config.json              what is run
    metrics.jsonl            a line an effective epoch
    checkpoint.pt            where the run stands; while it goes on also checkpoint-previous.pt, the one before
    result.json              how it ended; a folder without it is a run that has not

A folder is named by its config, and in it one by the seed. Records are for ever: what a release wrote is read by all
later ones.
"""

from replenish.lab.runs.folder import RunFolder, finite, folder_of
from replenish.lab.runs.records import RunRecord, read_run, read_runs

__all__ = ["RunFolder", "RunRecord", "finite", "folder_of", "read_run", "read_runs"]
