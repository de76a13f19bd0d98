"""A text file of any size, shuffled line by line through a pool of 10,000 lines, and resumed in the middle.

    python examples/stream_text.py                       10 million lines in a temporary folder (some 80 MB)
    python examples/stream_text.py --lines 100000
    python examples/stream_text.py --file my.txt

One pass over the file records where every 1024th line begins. After that the stream can begin at any line. So its state
is a few numbers, and only the pool is in memory.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from replenish.stream import PooledStream, TextLines


def written(path: Path, lines: int) -> Path:
    with path.open("w") as file:
        for first in range(0, lines, 100_000):
            file.writelines(f"{number}\n" for number in range(first, min(first + 100_000, lines)))
    return path


def shuffle_once(path: Path, batch_size: int = 64, pool_size: int = 10_000) -> None:
    start = time.perf_counter()
    source = TextLines(path)
    print(f"{source.length:,} lines found in {time.perf_counter() - start:.1f} s")

    def stream() -> PooledStream[str]:
        return PooledStream(source, batch_size=batch_size, pool_size=pool_size, repeat=False)

    start, count, state = time.perf_counter(), 0, ""
    whole = stream()
    middle = source.length // batch_size // 2
    for batch in whole:
        count += len(batch)
        if whole.step == middle:
            state = json.dumps(whole.state_dict())
    assert count == source.length  # every line exactly once
    print(f"read in {time.perf_counter() - start:.1f} s, batches of {batch_size}")

    if state:
        start = time.perf_counter()
        resumed = stream()
        resumed.load_state_dict(json.loads(state))
        rest = len(next(resumed))
        print(f"resumed in the middle in {time.perf_counter() - start:.2f} s from {state}")
        rest += sum(map(len, resumed))
        assert rest == source.length - middle * batch_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--file", type=Path)
    options = parser.parse_args()
    if options.file:
        shuffle_once(options.file)
    else:
        with tempfile.TemporaryDirectory() as folder:
            shuffle_once(written(Path(folder, "lines.txt"), options.lines))


if __name__ == "__main__":
    main()
