"""The cost of the flight recorder: CPU time compared with the same passes without it, and bytes per epoch.

    python benchmarks/flight_record.py [--samples 1280000] [--batch-size 256] [--passes 5]

Passes with and without the recorder alternate in one process. The dataset does nothing, so in a real training the
recorder's share is smaller. Prints the median and the range of the ratios of neighbouring passes.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader

from replenish.exec.environment import AuditTask
from replenish.exec.flight_record import finish_record, start_record
from replenish.exec.recorder import Recorder
from replenish.torch import SRSBatchSampler


def seconds(loader: DataLoader) -> float:
    """Return the CPU time of a pass."""
    start = time.process_time()
    for _ in loader:
        pass
    return time.process_time() - start


def main() -> None:
    """Measure, and print a line for each loader."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_280_000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--passes", type=int, default=5)
    options = parser.parse_args()
    dataset = torch.utils.data.TensorDataset(torch.arange(options.samples))
    torch.manual_seed(0)
    for name in ("shuffled", "in order", "srs"):
        if name == "srs":
            loader = DataLoader(dataset, batch_sampler=SRSBatchSampler(dataset, options.batch_size))
        else:
            loader = DataLoader(dataset, batch_size=options.batch_size, shuffle=name == "shuffled")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "run.rec")
            recorder = Recorder(AuditTask(str(start_record(file)), facts=False))
            recorder.see(loader)
            ratios, plain = [], []
            for _ in range(options.passes):
                recorder.active = False
                plain.append(seconds(loader))
                recorder.active = True
                ratios.append(seconds(loader) / plain[-1])
            recorder.close()
            recorder.active = False
            finish_record(file)
            size = file.stat().st_size / options.passes
        print(
            f"{name}: N = {options.samples:,}, B = {options.batch_size}: {statistics.median(plain):.2f} s per pass; "
            f"with the recorder {statistics.median(ratios):.3f} times ({min(ratios):.3f} to {max(ratios):.3f}, "
            f"n = {len(ratios)}); {size:,.0f} bytes per epoch"
        )


if __name__ == "__main__":
    main()
