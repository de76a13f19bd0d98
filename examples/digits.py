"""A small network on scikit-learn's digits with three orders, and an exact resume.

    python examples/digits.py [--seeds 3] [--epochs 20]

Only `Training` uses Replenish. The rest is an ordinary PyTorch training.
"""

from __future__ import annotations

import argparse
import hashlib
import math
from itertools import islice

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from replenish import BatchedReplacement, Order, RandomReshuffling, SequencedReplacement
from replenish.torch import OrderBatchSampler

BATCH_SIZE = 64
ORDERS: dict[str, type[Order]] = {
    "reshuffling": RandomReshuffling,
    "SRS": SequencedReplacement,
    "replacement": BatchedReplacement,
}


def data() -> tuple[TensorDataset, TensorDataset]:
    digits = load_digits()
    images = torch.tensor(digits.images / 16, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target)
    train, test = train_test_split(np.arange(len(labels)), test_size=450, stratify=digits.target, random_state=0)
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


class Training:
    """A network with its optimizer, schedule and sampler, which a checkpoint holds."""

    def __init__(self, order: Order, dataset: TensorDataset, epochs: int, seed: int) -> None:
        torch.manual_seed(seed)  # the same initial weights for every order: runs of one seed are paired
        self.model = network()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
        steps = epochs * order.steps_per_epoch
        drops = [round(steps * part) for part in (0.6, 0.75, 0.875)]  # the paper's 120, 150, 175 of 200
        self.schedule = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, drops, gamma=0.1)
        self.sampler = OrderBatchSampler(order)
        self.loader = DataLoader(dataset, batch_sampler=self.sampler)
        self.step = 0

    def train(self, steps: int) -> None:
        """Train for `steps` steps, over as many passes as needed."""
        while steps:
            for images, labels in islice(self.loader, steps):
                loss = F.cross_entropy(self.model(images), labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.schedule.step()
                self.step += 1
                steps -= 1

    def save(self) -> dict[str, object]:
        parts = {name: getattr(self, name).state_dict() for name in ("model", "optimizer", "schedule")}
        return {**parts, "sampler": self.sampler.state_dict(step=self.step)}

    def load(self, checkpoint: dict[str, object]) -> None:
        for name, state in checkpoint.items():
            getattr(self, name).load_state_dict(state)
        self.step = checkpoint["sampler"]["step"]  # type: ignore[index]

    def weights_sha256(self) -> str:
        digest = hashlib.sha256()
        for tensor in self.model.state_dict().values():
            digest.update(tensor.numpy().tobytes())
        return digest.hexdigest()

    @torch.no_grad()
    def error(self, dataset: TensorDataset) -> float:
        """Return the error on `dataset` in percent."""
        self.model.eval()
        images, labels = dataset.tensors
        wrong = (self.model(images).argmax(dim=1) != labels).double().mean().item()
        self.model.train()
        return 100 * wrong


def interval(values: list[float]) -> str:
    """Return mean and 95 % interval (Student's t)."""
    if len(values) < 2:
        return f"{values[0]:.2f}"
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return f"{np.mean(values):.2f} ± {half:.2f}"


def resume_exactly(console: Console, train: TensorDataset, epochs: int) -> None:
    """Stop a run in the middle of an epoch, resume it in a new one, and compare the weights."""
    order = SequencedReplacement(len(train), BATCH_SIZE)
    steps = epochs * order.steps_per_epoch
    whole = Training(order, train, epochs, seed=0)
    whole.train(steps)

    stopped = Training(order, train, epochs, seed=0)
    stopped.train(steps * 2 // 5 + 7)
    resumed = Training(SequencedReplacement(len(train), BATCH_SIZE), train, epochs, seed=99)
    resumed.load(stopped.save())
    resumed.train(steps - resumed.step)
    same = whole.weights_sha256() == resumed.weights_sha256()
    console.print(
        f"Stopped at step {stopped.step} of {steps}, resumed from a state of {len(stopped.save()['sampler'])} fields: "
        f"the final weights are "
        f"[bold]{'the same bits' if same else 'DIFFERENT'}[/bold] ({whole.weights_sha256()[:12]})."
    )
    if not same:
        raise SystemExit(1)


def positive(text: str) -> int:
    value = int(text) if text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"should be a whole number of at least 1, but got {text!r}")
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=positive, default=3, help="runs of each order (default 3)")
    parser.add_argument("--epochs", type=positive, default=20, help="effective epochs of a run (default 20)")
    options = parser.parse_args()

    torch.set_num_threads(1)  # a network this small is slower on two threads
    console = Console()
    train, test = data()
    console.print(f"{len(train)} training and {len(test)} test images of 8x8 digits; B = {BATCH_SIZE}.")

    errors: dict[str, list[float]] = {name: [] for name in ORDERS}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("training", total=options.seeds * len(ORDERS) * options.epochs)
        for seed in range(options.seeds):
            for name, kind in ORDERS.items():
                order = kind(len(train), BATCH_SIZE, seed=seed)  # type: ignore[call-arg]
                run = Training(order, train, options.epochs, seed)
                for _ in range(options.epochs):
                    progress.update(task, description=f"seed {seed}, {name}")
                    run.train(order.steps_per_epoch)
                    progress.advance(task)
                errors[name].append(run.error(test))

    table = Table(title=f"test error (%) after {options.epochs} effective epochs, n = {options.seeds}")
    for heading in ("order", "mean ± 95 % interval", "minus reshuffling, paired"):
        table.add_column(heading)
    for name, values in errors.items():
        paired = [value - base for value, base in zip(values, errors["reshuffling"], strict=True)]
        table.add_row(name, interval(values), "" if name == "reshuffling" else interval(paired))
    console.print(table)
    console.print(
        "So few seeds on so small a task decide nothing: this shows how the sampler works, not that it helps.\n"
    )
    resume_exactly(console, train, options.epochs)


if __name__ == "__main__":
    main()
