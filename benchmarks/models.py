"""Speed of a training step on a CPU: our networks compared with pytorchcv's, and the effect of some settings.

    python benchmarks/models.py               # print the tables (some minutes, mostly for torch.compile)
    python benchmarks/models.py --no-compile
    python benchmarks/models.py --write       # also write them; the table of networks to docs/models.md
    python benchmarks/models.py --table       # only write the table of networks there

A step is forward, backward and SGD with momentum on a batch of 64 images of 32x32 pixels, on one thread. All candidates
of a table alternate in one process, and each round begins with another one. Times are processor times. Other work on
the machine affects all candidates equally, so only the ratios are meaningful. A ratio is the median over the rounds of
(this candidate's time / the first candidate's time in the same round), followed by its quartiles.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from unittest import mock

import torch
import torch.nn.functional as F
from pages import write_between
from torch import Tensor, nn

from replenish.lab.machine import commit, processor
from replenish.lab.models import build
from replenish.lab.models.layers import Dropout
from replenish.lab.models.table import models_table
from replenish.lab.show.markdown import table_lines

Step = Callable[[], None]
PAGE = "docs/models.md"

# Shown name: (name in the table of networks, overrides that make it equal to pytorchcv's network).
NETWORKS: dict[str, tuple[str, dict[str, object]]] = {
    "WRN-16-2": ("wide-resnet-16-2-full-preactivation", {"dropout": 0.0}),
    "DenseNet-BC-40-12": ("densenet-bc-40-12", {}),
}


def ours(network: str) -> nn.Module:
    name, overrides = NETWORKS[network]
    return build(name, **overrides)  # type: ignore[arg-type]


def theirs(network: str) -> nn.Module:
    from pytorchcv.models.densenet_cifar import get_densenet_cifar
    from pytorchcv.models.wrn_cifar import get_wrn_cifar

    if network == "WRN-16-2":
        return get_wrn_cifar(num_classes=10, blocks=16, width_factor=2)
    return get_densenet_cifar(num_classes=10, blocks=40, growth_rate=12, bottleneck=True)


def channels_last(model: nn.Module) -> nn.Module:
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def training_step(model: nn.Module, images: Tensor, targets: Tensor, *, fused: bool = False) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, fused=fused)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(images), targets).backward()
        optimizer.step()

    return step


def as_given(step: Step) -> Step:
    """Return the step without the memory layout that our networks choose on a CPU."""

    def patched() -> None:
        with (
            mock.patch("replenish.lab.models.resnet.fast_layout", lambda images: images),
            mock.patch("replenish.lab.models.densenet.fast_layout", lambda images: images),
        ):
            step()

    return patched


def take_turns(steps: dict[str, Step], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        step()  # Warms the allocator and oneDNN's primitives.
    order = list(steps)
    for _ in range(rounds):
        for name in order:
            start = time.process_time()
            steps[name]()
            times[name].append(time.process_time() - start)
        order = order[1:] + order[:1]
    return times


def ratio(times: list[float], base: list[float]) -> str:
    ratios = [a / b for a, b in zip(times, base, strict=True)]
    if times is base or len(ratios) < 2:
        return f"{ratios[0]:.2f}"
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def milliseconds(times: list[float]) -> str:
    return f"{1e3 * statistics.median(times):.0f}"


def against_pytorchcv(images: Tensor, targets: Tensor, rounds: int) -> list[str]:
    lines = [
        "| network | pytorchcv, ms a step | ours, ms a step | ours / pytorchcv | ours / pytorchcv in channels last |",
        "|---|---:|---:|---:|---:|",
    ]
    last = images.contiguous(memory_format=torch.channels_last)
    for network in NETWORKS:
        steps = {
            "theirs": training_step(theirs(network), images, targets),
            "ours": training_step(ours(network), images, targets),
            "theirs, last": training_step(channels_last(theirs(network)), last, targets),
        }
        times = take_turns(steps, rounds)
        lines.append(
            f"| {network} | {milliseconds(times['theirs'])} | {milliseconds(times['ours'])} "
            f"| {ratio(times['ours'], times['theirs'])} | {ratio(times['ours'], times['theirs, last'])} |"
        )
    return lines


def settings(images: Tensor, targets: Tensor, rounds: int, compiled: bool) -> list[str]:
    variants: dict[str, Callable[[nn.Module], Step]] = {
        "as built (images laid out channels last)": lambda model: training_step(model, images, targets),
        "channels first": lambda model: as_given(training_step(model, images, targets)),
        "weights channels last too": lambda model: training_step(channels_last(model), images, targets),
        "`SGD(fused=True)`": lambda model: training_step(model, images, targets, fused=True),
    }
    if compiled:
        variants["`torch.compile`"] = lambda model: training_step(torch.compile(model), images, targets)
    cells: dict[str, list[str]] = {name: [] for name in variants}
    notes = []
    for network in NETWORKS:
        steps = {}
        for name, make in variants.items():
            start = time.perf_counter()
            try:
                step = make(ours(network))
                step()
            except Exception as error:  # Compiling fails on a machine without a C++ compiler.
                cells[name].append(f"fails: {type(error).__name__}")
                continue
            if "compile" in name:
                notes.append(f"{time.perf_counter() - start:.0f} s for {network}")
            steps[name] = step
        times = take_turns(steps, rounds)
        for name in steps:
            cells[name].append(ratio(times[name], times[next(iter(steps))]))
    lines = ["| setting | " + " | ".join(NETWORKS) + " |", "|---|" + "---:|" * len(NETWORKS)]
    lines += [f"| {name} | " + " | ".join(values) + " |" for name, values in cells.items()]
    return [*lines, "", f"Compiling takes {' and '.join(notes)}, once a process."] if notes else lines


def dropout(images: Tensor, targets: Tensor, rounds: int) -> list[str]:
    plain = build("wrn-16-2")
    for unit in plain.modules():
        if isinstance(getattr(unit, "dropout", None), Dropout):
            unit.dropout = nn.Dropout(0.3)
    steps = {
        "none": training_step(build("wrn-16-2", dropout=0.0), images, targets),
        "0.3, ours": training_step(build("wrn-16-2"), images, targets),
        "0.3, `nn.Dropout`": training_step(plain, images, targets),
    }
    times = take_turns(steps, rounds)
    lines = ["| dropout | `wrn-16-2` |", "|---|---:|"]
    return lines + [f"| {name} | {ratio(times[name], times['none'])} |" for name in steps]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21, help="timed steps of each candidate (default 21)")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out: it takes minutes")
    parser.add_argument("--write", action="store_true", help=f"write everything to {PAGE}")
    parser.add_argument("--table", action="store_true", help=f"write only the table of networks, to {PAGE}")
    options = parser.parse_args()
    if options.write or options.table:
        write_between(PAGE, "networks", "\n".join(table_lines(models_table())))
    if options.table:
        return
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images, targets = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))
    text = (
        f"Measured on {processor()}, {os.cpu_count()} cores, one thread, torch {torch.__version__}; commit {commit()}; "
        f"processor time, median (quartiles) of n = {options.rounds} steps of each, taking turns."
    )
    for table in (
        against_pytorchcv(images, targets, options.rounds),
        settings(images, targets, options.rounds, compiled=not options.no_compile),
        dropout(images, targets, options.rounds),
    ):
        text += "\n\n" + "\n".join(table)
    print(text)
    if options.write:
        write_between("benchmarks/README.md", "benchmarks/models.py", text)


if __name__ == "__main__":
    main()
