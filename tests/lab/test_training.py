"""The trainer in one process: its results, its measurements, its records."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small_runs import DIGITS, TINY, Plain, blobs, dropping, lines
from torch import Tensor, nn

from replenish import diagnostics
from replenish.lab import Hardware, RunConfig, train, training
from replenish.lab.data import Augmentation, Batches, load
from replenish.lab.models import build
from replenish.lab.runs import RunFolder
from replenish.lab.stopping import StopRequest

# The training loss of the first 20 steps of WRN-10-1 on digits, SRS, seed 0, in one CPU process (torch 2.13).
GOLDEN_LOSSES = [
    *(2.340554, 2.320918, 2.332128, 2.348527, 2.270208, 2.316478, 2.326943, 2.236201, 2.196915, 2.273447),
    *(2.222342, 2.239110, 2.250429, 2.215518, 2.167802, 2.123175, 1.998159, 2.057110, 1.990986, 1.894428),
]


def stream_seed(seed: int, *purpose: int) -> int:
    """Return the seed of torch's generator for the weights (1), or for the dropout (2) of a rank."""
    for word in purpose:
        seed = int(np.random.Philox(key=[seed, word], counter=[0, 0, 0, 65]).random_raw()) >> 1
    return seed


def plain_loop(config: RunConfig) -> tuple[nn.Module, list[float]]:
    """Do the same run without the trainer: torch's SGD, torch's schedule, and a loop over the batches."""
    digits = load("digits")
    torch.manual_seed(stream_seed(config.seed, 1))
    network = build(config.model, 1, 10, 8)
    order = config.build_order(len(digits.train_labels))
    batches = Batches(order, digits, augment=Augmentation(config.pad, config.flip), seed=config.seed)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=0.0005)
    milestones = [round(epoch * order.steps_per_epoch) for epoch in config.decays]
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones, gamma=config.decay_factor)
    torch.manual_seed(stream_seed(config.seed, 2, 0))
    losses = []
    for images, labels in batches.batches(0, config.epochs * order.steps_per_epoch):
        loss = F.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return network, losses


class Recorder:
    """Keeps the events of a run."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def __call__(self, event: dict[str, Any]) -> None:
        self.events.append(event)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind]


@dataclasses.dataclass
class Trained:
    config: RunConfig
    folder: Path
    result: dict[str, Any]
    seen: Recorder

    @property
    def metrics(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Train three epochs on digits, with an event for every step."""
    folder, seen = tmp_path_factory.mktemp("run"), Recorder()
    config = DIGITS.for_epochs(3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training.loop, "SECONDS_BETWEEN_REPORTS", -1.0)
        result = train(config, folder, watch=seen, tensorboard=True, command="replenish run this")
    return Trained(config, folder, result, seen)


# -- results


def test_ends_in_the_bits_of_a_plain_loop(trained: Trained) -> None:
    network, losses = plain_loop(trained.config)
    assert training.weights_sha256(network) == trained.result["weights_sha256"]
    assert [event["loss"] for event in trained.seen.of("step")] == losses


def test_golden_loss_of_twenty_steps(trained: Trained) -> None:
    losses = [event["loss"] for event in trained.seen.of("step")][:20]
    assert losses[:5] == pytest.approx(GOLDEN_LOSSES[:5], rel=1e-4)
    # Other processors or thread counts round differently, and training amplifies that at every step: 7e-4 was seen at
    # step 9. `test_ends_in_the_bits_of_a_plain_loop` is the exact check.
    assert losses[5:] == pytest.approx(GOLDEN_LOSSES[5:], rel=1e-2)


@pytest.mark.parametrize(
    ("change", "optimizer"),
    [
        ({"optimizer": "adamw", "learning_rate": 0.01}, lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.0005)),
        ({"nesterov": True}, lambda p: torch.optim.SGD(p, 0.05, 0.9, weight_decay=0.0005, nesterov=True)),
    ],
)
def test_other_optimizers_and_smoothed_labels_end_in_the_bits_of_torchs_own(
    change: dict[str, Any], optimizer: Callable[[Any], torch.optim.Optimizer], tmp_path: Path
) -> None:
    config = RunConfig.from_dict(
        {**TINY.to_dict(), "schedule": "constant", "decay_epochs": (), "label_smoothing": 0.2, **change}
    )
    torch.manual_seed(stream_seed(0, 1))
    network = Plain()
    own = optimizer(network.parameters())
    for images, labels in Batches(config.build_order(64), blobs(), augment=Augmentation(1, False)).batches(0, 12):
        own.zero_grad()
        F.cross_entropy(network(images), labels, label_smoothing=0.2).backward()
        own.step()
    result = train(config, tmp_path, model=Plain, dataset=blobs())
    assert result["weights_sha256"] == training.weights_sha256(network)


def test_dropout_can_be_set(tmp_path: Path) -> None:
    network = training.named_model(dataclasses.replace(DIGITS, dropout=0.0), load("digits"))()
    assert {module.p for module in network.modules() if isinstance(module, nn.Dropout)} <= {0.0}
    with pytest.raises(TypeError, match="resnet-20 takes no argument 'dropout'"):
        training.named_model(dataclasses.replace(DIGITS, model="resnet-20", dropout=0.0), load("digits"))()


# -- measurements


def test_splits_are_measured_every_few_epochs(tmp_path: Path) -> None:
    config = dataclasses.replace(
        DIGITS.for_epochs(4), images_per_class=20, batch_size=50, test_every=3, clean_every=2, held_out=True
    )
    result = train(config, tmp_path)
    metrics = lines(tmp_path)
    assert [line["test_error"] is not None for line in metrics] == [False, False, True, True]
    assert ["clean_loss" in line for line in metrics] == [False, True, False, True]
    assert ["held_out_error" in line for line in metrics] == [False, False, False, True]
    digits = load("digits", images_per_class=20, held_out=True)
    network = build("wrn-10-1", 1, 10, 8)
    network.load_state_dict(torch.load(tmp_path / "checkpoint.pt", weights_only=True)["model"])
    network.eval()
    for name, images, labels in (
        ("clean", digits.train_images, digits.train_labels),
        ("held_out", digits.held_out_images, digits.held_out_labels),
    ):
        assert images is not None
        pixels = torch.from_numpy(images.copy()).permute(0, 3, 1, 2).float() / 255
        with torch.no_grad():
            found = network((pixels - float(digits.mean[0])) / float(digits.std[0])).argmax(1).numpy()
        wrong = found != labels
        assert result[f"{name}_error"] == pytest.approx(100 * wrong.mean(), abs=1e-9)
        by_class = [wrong[labels == label].mean() for label in range(10)]
        assert result[f"{name}_balanced_error"] == pytest.approx(100 * np.mean(by_class), abs=1e-9)
    assert len(digits.held_out_labels) == 1438 - 200  # type: ignore[arg-type]


def test_the_train_loss_is_the_mean_over_the_samples_of_the_epoch(tmp_path: Path) -> None:
    """With reshuffling, the last batch of an epoch is smaller, so the mean of the steps' losses would differ."""
    config = dataclasses.replace(DIGITS, order="reshuffling", epochs=1, decay_epochs=())
    train(config, tmp_path)
    _, losses = plain_loop(config)
    sizes = [64] * 22 + [30]
    assert lines(tmp_path)[0]["train_loss"] == pytest.approx(np.average(losses, weights=sizes), rel=1e-7)
    assert lines(tmp_path)[0]["unseen"] == 0


def test_unseen_matches_the_diagnostics(trained: Trained) -> None:
    order = trained.config.build_order(1438)
    for line in trained.metrics:
        assert line["unseen"] == round(diagnostics.measure(order, epochs=line["epoch"]).never_seen[-1] * 1438)
    assert trained.metrics[0]["unseen"] > trained.metrics[-1]["unseen"] > 0


def test_the_result_has_the_last_error_and_the_best(tmp_path: Path) -> None:
    """The errors are made up, so that the last epoch is not the best."""
    errors = iter([30.0, 10.0, 10.0, 20.0])
    config = TINY.for_epochs(4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training.loop, "evaluate", lambda *_: {"loss": 1.0, "error": next(errors)})
        result = train(config, tmp_path, model=Plain, dataset=blobs())
    assert (result["test_error"], result["best_test_error"], result["best_epoch"]) == (20.0, 10.0, 2)


# -- records


def test_the_result(trained: Trained) -> None:
    result, last = trained.result, trained.metrics[-1]
    digits = load("digits")
    expected = {
        "status": "finished",
        "test_error": last["test_error"],
        "train_loss": last["train_loss"],
        "test_loss": last["test_loss"],
        "best_test_error": min(line["test_error"] for line in trained.metrics),
        "steps": 69,
        "epochs": 3,
        "parameters": sum(parameter.numel() for parameter in build("wrn-10-1", 1, 10, 8).parameters()),
        "data": digits.describe(),
        "command": "replenish run this",
        "message": None,
    }
    assert {name: result[name] for name in expected} == expected
    assert torch.__version__.startswith(result["versions"]["torch"])
    assert {"python", "numpy", "replenish", "lightning-fabric"} <= set(result["versions"])
    assert {"processor", "cores", "system"} <= set(result["machine"])
    hardware = {"accelerator": "auto", "devices": 1, "num_nodes": 1, "threads": 1, "compile": False, "processes": 1}
    assert (result["hardware"], result["earlier_hardware"]) == (
        {**hardware, "device": "cpu", "precision": "32-true"},
        [],
    )
    assert result["commit"]
    assert len(result["weights_sha256"]) == 64


def test_tensorboard_events(trained: Trained) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(trained.folder))
    events.Reload()
    for name in ("train_loss", "test_loss", "test_error", "learning_rate", "unseen", "seconds"):
        found = [(event.step, event.value) for event in events.Scalars(name)]
        expected = [(line["step"], pytest.approx(line[name], rel=1e-5)) for line in trained.metrics]
        assert found == expected


def test_the_events_of_a_run(trained: Trained) -> None:
    kinds = [event["event"] for event in trained.seen.events]
    assert kinds == ["start", *[*["step"] * 23, "epoch"] * 3, "end"]
    assert trained.seen.events[0] == {"event": "start", "step": 0, "total_steps": 69, "epochs": 3}
    assert all(event["samples_per_second"] > 0 for event in trained.seen.of("step"))
    assert trained.seen.events[-1]["result"] == trained.result


def test_a_finished_run_is_not_run_again(trained: Trained) -> None:
    files = {path.name: path.stat().st_mtime_ns for path in trained.folder.iterdir() if path.name != ".lock"}
    again = train(trained.config, trained.folder)
    assert again == trained.result
    assert files == {path.name: path.stat().st_mtime_ns for path in trained.folder.iterdir() if path.name != ".lock"}


# -- stopping and resuming


def interrupting(kind: str, number: int, count: int = 1) -> Callable[[dict[str, Any]], None]:
    """Return a watch that sends this process a signal at the `count`-th event of a kind."""
    seen = 0

    def watch(event: dict[str, Any]) -> None:
        nonlocal seen
        seen += event["event"] == kind
        if event["event"] == kind and seen == count:
            os.kill(os.getpid(), number)

    return watch


@pytest.mark.parametrize(
    ("step", "number"), [(1, signal.SIGINT), (3, signal.SIGTERM), *((step, signal.SIGINT) for step in (4, 5, 7, 8, 10))]
)
def test_a_run_can_be_stopped_at_any_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, number: int
) -> None:
    """Steps 4 and 8 end an epoch, and their measurements must not be lost."""
    monkeypatch.setattr(training.loop, "SECONDS_BETWEEN_REPORTS", -1.0)
    whole, folder = tmp_path / "whole", tmp_path / "stopped"
    expected = train(TINY, whole, model=dropping, dataset=blobs())
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    watch = interrupting("step", number, step)
    with pytest.raises(training.Stopped, match=r"stopped at step \d+ of 12 and saved in .*same command") as stopped:
        train(TINY, folder, model=dropping, dataset=blobs(), watch=watch)
    assert stopped.value.signal_number == number
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    at = torch.load(folder / "checkpoint.pt", weights_only=True)["step"]
    assert step <= at <= step + 1
    assert not (folder / "result.json").exists()
    seen = Recorder()
    result = train(TINY, folder, model=dropping, dataset=blobs(), watch=seen)
    assert seen.events[0]["step"] == at
    assert result["weights_sha256"] == expected["weights_sha256"]
    assert lines(folder) == lines(whole)


@pytest.mark.parametrize(("kind", "count"), [("step", 12), ("epoch", 3), ("end", 1)])
def test_a_signal_that_comes_with_the_last_step_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, count: int
) -> None:
    """The run may end with its last epoch measured, but the caller must not start the next run."""
    monkeypatch.setattr(training.loop, "SECONDS_BETWEEN_REPORTS", -1.0)
    whole, folder = tmp_path / "whole", tmp_path / "stopped"
    expected = train(TINY, whole, model=dropping, dataset=blobs())
    interrupted = False
    try:
        train(TINY, folder, model=dropping, dataset=blobs(), watch=interrupting(kind, signal.SIGINT, count))
    except KeyboardInterrupt:
        interrupted = True
    result = train(TINY, folder, model=dropping, dataset=blobs())
    assert result["test_error"] == expected["test_error"]
    assert lines(folder) == lines(whole)
    assert interrupted


def test_a_second_interrupt_stops_at_once(tmp_path: Path) -> None:
    request = StopRequest()
    request.ask(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        request.ask(signal.SIGINT, None)


def test_trains_in_another_thread_too(tmp_path: Path) -> None:
    """Only the main thread can have signal handlers."""
    results: list[dict[str, Any]] = []
    thread = threading.Thread(
        target=lambda: results.append(train(TINY, tmp_path / "thread", model=Plain, dataset=blobs()))
    )
    thread.start()
    thread.join()
    here = train(TINY, tmp_path / "main", model=Plain, dataset=blobs())
    assert results[0]["weights_sha256"] == here["weights_sha256"]


def test_other_data_under_the_same_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(training.Stopped):
        train(TINY, tmp_path, model=Plain, dataset=blobs(), watch=interrupting("epoch", signal.SIGINT))
    with pytest.raises(ValueError, match="a checkpoint of a run on other data: blobs has changed since"):
        train(TINY, tmp_path, model=Plain, dataset=blobs(seed=1))


def test_another_network_of_your_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(training.Stopped):
        train(TINY, tmp_path, model=Plain, dataset=blobs(), watch=interrupting("epoch", signal.SIGINT))
    refused = pytest.raises(ValueError, match=r"holds a run of the network Plain@\w{8}, but the network is now Plain@")
    with refused:
        train(TINY, tmp_path, model=dropping, dataset=blobs())
    result = train(TINY, tmp_path, model=Plain, dataset=blobs())
    assert train(TINY, tmp_path, model=lambda: Plain(), dataset=blobs()) == result
    with refused:
        train(TINY, tmp_path, model=dropping, dataset=blobs())


@pytest.mark.parametrize("named", [True, False])
def test_a_run_that_was_stopped_on_a_gpu_resumes_here(tmp_path: Path, named: bool) -> None:
    """A GPU's generator state has another size, so dropout starts a new stream. The batches stay the same."""
    with pytest.raises(training.Stopped):
        train(TINY, tmp_path, model=dropping, dataset=blobs(), watch=interrupting("epoch", signal.SIGINT))
    checkpoints = RunFolder(tmp_path).checkpoints
    checkpoint, _ = checkpoints.load()
    assert checkpoint is not None
    gpu = {**checkpoint["hardware"][0], "device": "cuda"}
    checkpoint |= {"rng": [torch.zeros(16, dtype=torch.uint8)], "rng_device": "cuda", "hardware": [gpu]}
    if not named:  # as in earlier checkpoints
        del checkpoint["rng_device"]
    checkpoints.save(checkpoint)
    result = train(TINY, tmp_path, model=dropping, dataset=blobs())
    assert result["status"] == "finished"
    assert (result["hardware"]["device"], result["earlier_hardware"]) == ("cpu", [gpu])


class Large(Plain):
    def forward(self, images: Tensor) -> Tensor:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")


class Vast(Plain):
    def forward(self, images: Tensor) -> Tensor:
        return images.new_empty(1 << 60)


def full_device(*arguments: object) -> torch.optim.Optimizer:
    raise RuntimeError("CUDA error: out of memory")


@pytest.mark.parametrize("model", [Large, Vast, Plain])
def test_a_network_too_large_for_the_device_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Callable[[], nn.Module]
) -> None:
    if model is Plain:  # before the first step
        monkeypatch.setattr(training.loop, "build_optimizer", full_device)
    with pytest.raises(ValueError, match="with batches of .* does not fit into the memory of cpu: use precision"):
        train(TINY, tmp_path, model=model, dataset=blobs())


def test_a_checkpoint_of_another_release_is_refused(tmp_path: Path) -> None:
    RunFolder(tmp_path).claim(TINY)
    RunFolder(tmp_path).checkpoints.save({"version": 0})
    with pytest.raises(ValueError, match="a checkpoint of version 0, but this release reads version 1"):
        train(TINY, tmp_path, model=Plain, dataset=blobs())


# -- losses that are not finite


class BreaksAt(Plain):
    """Gives a loss that is not finite at one step, and weights that stay finite."""

    def __init__(self, step: int, value: float) -> None:
        super().__init__()
        self.step, self.value, self.calls = step, value, 0

    def forward(self, images: Tensor) -> Tensor:
        logits = super().forward(images)
        if self.training:
            self.calls += 1
            if self.calls == self.step + 1:
                return logits * self.value
        return logits


@pytest.mark.parametrize(("step", "value"), [(0, math.nan), (7, math.inf), (11, math.nan)])
def test_a_loss_that_is_not_finite_stops_the_run(tmp_path: Path, step: int, value: float) -> None:
    seen = Recorder()
    result = train(TINY, tmp_path, model=lambda: BreaksAt(step, value), dataset=blobs(), watch=seen)
    assert result["status"] == "diverged"
    assert result["test_error"] is None
    indices = TINY.build_order(64).batch(step).tolist()
    rate = TINY.learning_rate_at(step, 4)
    assert result["message"] == (
        f"the loss is not a finite number at step {step} (effective epoch {step / 4:.2f}, learning rate {rate:g}); the "
        f"batch's samples are {indices}"
    )
    assert RunFolder(tmp_path).result() == result
    assert seen.events[-1] == {"event": "end", "result": result}
    assert result["best_epoch"] is None if step < 4 else result["best_epoch"] is not None
    again = train(TINY, tmp_path, model=lambda: BreaksAt(step, value), dataset=blobs())
    assert again == result  # the run has ended and is not repeated


def refuse_constant(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def test_a_run_whose_last_step_diverges_is_not_finished(tmp_path: Path) -> None:
    """The loss of the only step is finite, but the test loss is not."""
    config = dataclasses.replace(TINY, learning_rate=1e38, batch_size=64, epochs=1, decay_epochs=())
    result = train(config, tmp_path, model=Plain, dataset=blobs())
    json.loads((tmp_path / "result.json").read_text(), parse_constant=refuse_constant)
    if (tmp_path / "metrics.jsonl").exists():
        for line in (tmp_path / "metrics.jsonl").read_text().splitlines():
            json.loads(line, parse_constant=refuse_constant)
    assert result["status"] == "diverged"


# -- hardware and precision


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize(("accelerator", "devices"), [("cuda", 1), ("gpu", 1), ("cuda", 2)])
def test_a_missing_device_is_refused(tmp_path: Path, accelerator: str, devices: int) -> None:
    with pytest.raises(
        ValueError, match=f"^accelerator='{accelerator}' with devices={devices} cannot be used here.* cpu"
    ):
        train(TINY, tmp_path / "run", hardware=Hardware(accelerator, devices), model=Plain, dataset=blobs())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("precision", ["bf16-mixed", "64-true"])
def test_other_precisions(tmp_path: Path, precision: str) -> None:
    config = dataclasses.replace(DIGITS, precision=precision, epochs=1, decay_epochs=())
    result = train(config, tmp_path)
    assert result["status"] == "finished"
    assert result["train_loss"] < 2.5
    weights = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["model"].values()
    expected = {"bf16-mixed": torch.float32, "64-true": torch.float64}[precision]
    assert {weight.dtype for weight in weights if weight.is_floating_point()} == {expected}


def test_threads_are_set(tmp_path: Path) -> None:
    seen: list[int] = []
    for threads in (2, 1):
        train(
            TINY,
            tmp_path / str(threads),
            hardware=Hardware(threads=threads),
            model=Plain,
            dataset=blobs(),
            watch=lambda event: seen.append(torch.get_num_threads()),
        )
    assert (seen[0], seen[-1]) == (2, 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # from torch's compiler
def test_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace the network, but run it uncompiled: the C++ compiler would take 20 s, and torch tests it."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    expected = train(TINY, tmp_path / "plain", model=Plain, dataset=blobs())
    result = train(TINY, tmp_path / "compiled", hardware=Hardware(compile=True), model=Plain, dataset=blobs())
    assert result["status"] == "finished"
    assert result["train_loss"] == pytest.approx(expected["train_loss"], rel=1e-4)
    assert list(torch.load(tmp_path / "compiled" / "checkpoint.pt", weights_only=True)["model"]) == list(
        Plain().state_dict()
    )
