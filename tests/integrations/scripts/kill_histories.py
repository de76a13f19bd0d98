"""Trainings that `kill -9` ends at random steps, each gone on with by a new process, and compared with one run.

    python kill_histories.py lightning 8     eight histories of the stack; prints how many and how many kills

The process kills itself after a number of steps that is drawn beforehand, so nothing depends on time. New processes are
forked from this one, which has imported the framework and trained nothing: that takes no seconds.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import sys
import tempfile
import traceback
from pathlib import Path

from killed_trainings import TRAININGS, Diary, Training

#: After so many kills a process is left alone: one that is killed before it saves would never end.
MOST_KILLS = 5


def in_a_new_process(train: Training, seed: int, folder: Path, kill_after: int) -> tuple[bool, int, list[list[int]]]:
    """Train; return whether it was killed, how many batches its checkpoint had trained, and those that it trained."""
    diary = Diary(folder / "diary.jsonl", kill_after)
    if (child := os.fork()) == 0:
        try:
            train(random.Random(seed), folder, diary)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if not killed and status != 0:
        sys.exit(f"the training of seed {seed} failed")
    first, *batches = map(json.loads, diary.path.read_text().splitlines())
    diary.path.unlink()
    return killed, first, batches


def history(train: Training, seed: int, folder: Path) -> int:
    """Train with kills and without, and compare; return how many there were."""
    kills = random.Random(seed + 10**6)
    (folder / "whole").mkdir(parents=True)
    _, _, whole = in_a_new_process(train, seed, folder / "whole", kill_after=0)
    kept: list[list[int]] = []
    for number in range(MOST_KILLS + 1):
        limit = kills.randint(2, 12) if number < MOST_KILLS else 0
        killed, first, batches = in_a_new_process(train, seed, folder, limit)
        assert first <= len(kept), "a checkpoint has more batches than were trained"
        kept = kept[:first] + batches
        if not killed:
            break
    if kept != whole:
        same = next((step for step, pair in enumerate(zip(kept, whole, strict=False)) if pair[0] != pair[1]), None)
        sys.exit(f"seed {seed}: {len(kept)} batches against {len(whole)}, the first that differs is {same}")
    return number


def main() -> None:
    """Play histories of one stack."""
    stack, histories = sys.argv[1], int(sys.argv[2])
    train = TRAININGS[stack]()  # imports the framework
    gc.freeze()  # what is imported: the Trainers collect garbage again and again
    with tempfile.TemporaryDirectory() as folder:
        kills = [history(train, seed, Path(folder, str(seed))) for seed in range(histories)]
    print(json.dumps({"histories": len(kills), "kills": sum(kills)}))


if __name__ == "__main__":
    main()
