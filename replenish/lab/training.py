"""The trainer: one run, from a config to a result, on whatever hardware Lightning Fabric finds.

It reads from top to bottom: `train` prepares, takes up a checkpoint if there is one, then trains epoch by epoch. A
run is a function of its config: initial weights, order, augmentation and dropout each have a stream keyed by
the seed. On one CPU process a run that was killed and started again ends in the same bits as one that was not.
"""

from __future__ import annotations

import atexit
import hashlib
import math
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from torch import Tensor, nn

from replenish import state
from replenish.lab import machine
from replenish.lab.config import Hardware, RunConfig
from replenish.lab.data import Augmentation, Batches, Dataset, load
from replenish.lab.models import build, training_loss
from replenish.lab.orders import build_order
from replenish.lab.records import RunFolder
from replenish.order import Order
from replenish.sharding import check_shares

#: Told of everything that happens: `{"event": "start" | "step" | "epoch" | "warning" | "end", ...}`.
Watch = Callable[[dict[str, Any]], None]
MakeModel = Callable[[], nn.Module]
Result = dict[str, Any]
T = TypeVar("T")

CHECKPOINT_VERSION = 1
#: Steps between looks at the loss. To look makes the processor wait for the device, so it is not done every step.
STEPS_BETWEEN_LOOKS = 20
SECONDS_BETWEEN_REPORTS = 0.2
NEVER = torch.iinfo(torch.int64).max
# What a seed is used for; the order and the augmentation have streams of their own in the core.
WEIGHTS, DROPOUT = 1, 2


class Stopped(KeyboardInterrupt):
    """A run was asked to stop by a signal, and has saved where it stands."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number = signal_number


class DivergedError(ArithmeticError):
    """The loss is not a number any more."""


def train(
    config: RunConfig,
    folder: str | Path,
    *,
    hardware: Hardware | None = None,
    model: MakeModel | None = None,
    dataset: Dataset | None = None,
    watch: Watch | None = None,
    tensorboard: bool = False,
    command: str = "",
) -> Result:
    """Train a run to its end, or go on with one that was stopped, and return its result.

    A run whose folder already has a result is not run again. Ctrl-C saves and raises `Stopped`. A loss that is
    not a number ends the run with a result whose status is "diverged".

    Args:
        config: What to run.
        folder: The run's folder; see `replenish.lab.records`.
        hardware: What to run it on; by default one process with one thread.
        model: Makes a network of your own, with fresh weights from torch's generator; by default the network
            that `config.model` names.
        dataset: Data of your own; by default what `config.dataset` names.
        watch: Called with what happens, for a display.
        tensorboard: Whether to write TensorBoard events into the folder as well.
        command: The command line, for the record.

    Example:
        >>> import tempfile
        >>> from replenish.lab import RunConfig, train
        >>> config = RunConfig(dataset="digits", model="wrn-10-1", epochs=1, pad=1, flip=False, decay_epochs=())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = train(config, folder)
        >>> result["status"], result["steps"]
        ('finished', 23)
    """
    hardware = hardware or Hardware()
    torch.set_num_threads(hardware.threads)
    torch.manual_seed(_seed_for(config, WEIGHTS))  # before the network: equal seeds are equal initial weights
    if isinstance(model, nn.Module):
        raise TypeError("model should make a network, as a class or a function does, but got a network itself")
    dataset = dataset or load(config.dataset, images_per_class=config.images_per_class, image_size=config.image_size)
    # Before processes start: what cannot be shared is refused once, and nothing is written.
    check_shares(build_order(config, len(dataset.train_labels)), hardware.devices * hardware.num_nodes)
    network = (model or named_model(config, dataset))()
    fabric = _start(hardware, config, network)
    records = RunFolder(folder)
    with ExitStack() as stack:
        # The first process decides and writes; the others do as it does.
        _on_first(fabric, lambda: stack.enter_context(records.owned_by(config)))
        if (result := _on_first(fabric, records.result)) is not None:
            if result["data"]["fingerprint"] != dataset.fingerprint:
                raise ValueError(
                    f"{records.path} holds a finished run on other data: {dataset.name} has changed since; give "
                    f"another folder"
                )
            return result
        events = stack.enter_context(_tensorboard(records.path, tensorboard and fabric.is_global_zero))
        stop = stack.enter_context(_stop_signals())
        run = _Run(config, dataset, network, fabric, hardware, records, watch or _ignore, stop, events)
        run.take_up_checkpoint()
        try:
            run.train()
            result = run.result("finished", command)
        except DivergedError as error:
            result = {**run.result("diverged", command), "message": str(error)}
        _on_first(fabric, lambda: records.write_result(result))
        fabric.barrier()  # nobody leaves while another still listens
        run.watch({"event": "end", "result": result})
        return result


def named_model(config: RunConfig, dataset: Dataset) -> MakeModel:
    """Return what makes the network that a config names, for the classes and the images of a dataset."""
    height, width = dataset.image_size
    if height != width:
        raise ValueError(
            f"the networks by name want square images, but those of {dataset.name} are {height} x {width}; give an "
            f"image_size"
        )
    return lambda: build(config.model, dataset.channels, dataset.num_classes, height)


class _Run:
    """A run under way: what a checkpoint holds, and the steps that change it."""

    def __init__(
        self,
        config: RunConfig,
        dataset: Dataset,
        network: nn.Module,
        fabric: Fabric,
        hardware: Hardware,
        records: RunFolder,
        watch: Watch,
        stop: _StopRequest,
        events: Any,
    ) -> None:
        self.config, self.dataset, self.fabric, self.hardware, self.records = config, dataset, fabric, hardware, records
        self.stop, self.events = stop, events
        self.watch: Watch = watch if fabric.is_global_zero else _ignore
        self.order: Order = build_order(config, len(dataset.train_labels))
        self.batches = Batches(
            self.order,
            dataset,
            augment=Augmentation(config.pad, config.flip),
            device=fabric.device,
            num_replicas=fabric.world_size,
            rank=fabric.global_rank,
            seed=config.seed,
        )
        self.total_steps = config.epochs * self.order.steps_per_epoch
        self.network = network  # kept beside the wrapped one: its state has the plain names
        self.optimizer = torch.optim.SGD(
            network.parameters(), lr=config.learning_rate, momentum=config.momentum, weight_decay=config.weight_decay
        )
        module: nn.Module = torch.compile(network) if hardware.compile else network  # type: ignore[assignment]
        self.model, self.wrapped_optimizer = fabric.setup(module, self.optimizer)
        torch.manual_seed(_seed_for(config, DROPOUT, fabric.global_rank))

        self.step = 0
        self.metrics: list[dict[str, Any]] = []
        self.seen = np.zeros(self.order.num_samples, dtype=np.bool_)
        # Sums stay on the device, so that no step waits for the loss to arrive.
        number = torch.float32 if fabric.device.type == "mps" else torch.float64
        self.loss_sum = torch.zeros((), dtype=number, device=fabric.device)
        self.loss_count = 0
        self.first_bad_step = torch.full((), NEVER, device=fabric.device)
        self.seconds_before, self.started = 0.0, time.perf_counter()
        self.commit = machine.commit()  # now: by the end of a long run the source may be another

    # -- training

    def train(self) -> None:
        """Train from where the run stands to its end."""
        self.watch({"event": "start", "step": self.step, "total_steps": self.total_steps, "epochs": self.config.epochs})
        per_epoch = self.order.steps_per_epoch
        while self.step < self.total_steps:
            epoch = self.step // per_epoch + 1
            self.train_until(epoch * per_epoch)
            self.metrics.append(self.measure(epoch))
            self.save()
            self._show_events()
            self.watch({"event": "epoch", **self.metrics[-1]})
            if self.step < self.total_steps:
                self._stop_if_asked(saved=True)

    def train_until(self, stop_step: int) -> None:
        """Train up to a step; the sums of the loss are left for `measure`."""
        self.model.train()
        reported, reported_step = time.perf_counter(), self.step
        for images, labels in self.batches.batches(self.step, stop_step):
            learning_rate = self.config.learning_rate_at(self.step, self.order.steps_per_epoch)
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate
            loss, _ = training_loss(self.model, images, labels)
            self.wrapped_optimizer.zero_grad()
            self.fabric.backward(self._weighted(loss, len(labels)))
            self.wrapped_optimizer.step()

            self.loss_sum += loss.detach() * len(labels)
            self.loss_count += len(labels)
            now_bad = torch.where(loss.detach().isfinite(), NEVER, self.step)
            self.first_bad_step = torch.minimum(self.first_bad_step, now_bad)
            self.step += 1
            if self._looks_now(stop_step):
                self._stop_if_diverged()
                if self.step < stop_step:  # an epoch that is complete is measured first
                    self._stop_if_asked()
            now = time.perf_counter()
            if now - reported > SECONDS_BETWEEN_REPORTS:
                speed = (self.step - reported_step) * self.config.batch_size / (now - reported)
                self.watch(
                    {
                        "event": "step",
                        "step": self.step,
                        "loss": loss.item(),
                        "learning_rate": learning_rate,
                        "samples_per_second": speed,
                    }
                )
                reported, reported_step = now, self.step

    def _weighted(self, loss: Tensor, own: int) -> Tensor:
        """Return the loss so that the mean of all processes' gradients is that of the whole batch."""
        if self.fabric.world_size == 1:
            return loss
        whole = len(self.order.batch(self.step)) if own * self.fabric.world_size != self.config.batch_size else None
        return loss if whole is None else loss * (own * self.fabric.world_size / whole)

    def _looks_now(self, stop_step: int) -> bool:
        # Processes have to look at the same steps, since they agree on what they find.
        alone = self.fabric.world_size == 1 and (self.stop.asked > 0 or self.fabric.device.type == "cpu")
        return alone or self.step % STEPS_BETWEEN_LOOKS == 0 or self.step == stop_step

    def _stop_if_diverged(self) -> None:
        step = int(_agreed(self.fabric, self.first_bad_step, "min"))
        if step == NEVER:
            return
        rate = self.config.learning_rate_at(step, self.order.steps_per_epoch)
        indices = self.order.batch(step).tolist()
        raise DivergedError(
            f"the loss is not a finite number at step {step} (effective epoch {self.order.effective_epoch(step):.2f}, "
            f"learning rate {rate:g}); the batch's samples are {indices}"
        )

    def _stop_if_asked(self, *, saved: bool = False) -> None:
        asked = torch.tensor(self.stop.asked, device=self.fabric.device)
        if number := int(_agreed(self.fabric, asked, "max")):
            if not saved:
                self.save()
            raise Stopped(
                f"stopped at step {self.step} of {self.total_steps} and saved in {self.records.path}; give the same "
                f"command again to go on",
                number,
            )

    # -- measuring

    def measure(self, epoch: int) -> dict[str, Any]:
        """Return the line of an effective epoch that has just ended."""
        loss_sum = float(_agreed(self.fabric, self.loss_sum, "sum"))
        count = int(_agreed(self.fabric, torch.tensor(self.loss_count, device=self.fabric.device), "sum"))
        self.loss_sum.zero_()
        self.loss_count = 0
        per_epoch = self.order.steps_per_epoch
        for indices in self.order.batches(self.step - per_epoch, self.step):
            self.seen[indices] = True
        test_loss, test_error = self.test()
        if not math.isfinite(test_loss):
            raise DivergedError(
                f"the test loss is not a finite number after step {self.step - 1} (effective epoch {epoch}, learning "
                f"rate {self.config.learning_rate_at(self.step - 1, per_epoch):g}); the batch's samples are "
                f"{self.order.batch(self.step - 1).tolist()}"
            )
        return {
            "epoch": epoch,
            "step": self.step,
            "learning_rate": self.config.learning_rate_at(self.step - 1, per_epoch),
            "train_loss": loss_sum / count,
            "test_loss": test_loss,
            "test_error": test_error,
            "unseen": int(np.count_nonzero(~self.seen)),
            "seconds": round(self.seconds(), 3),
        }

    @torch.inference_mode()
    def test(self) -> tuple[float, float]:
        """Return loss and error (in percent) on the test split."""
        self.network.eval()
        if self.fabric.world_size > 1:  # the running means of the first process, which are those that are saved
            for buffer in self.network.buffers():
                torch.distributed.broadcast(buffer, src=0)
        convert = self.fabric.strategy.precision.convert_input
        totals = torch.zeros(2, dtype=self.loss_sum.dtype, device=self.fabric.device)
        with self.fabric.autocast():
            for images, labels in self.batches.ordered("test"):
                logits = self.network(convert(images)).float()
                totals[0] += F.cross_entropy(logits, labels, reduction="sum")
                totals[1] += (logits.argmax(dim=1) != labels).sum()
        loss, wrong = (_agreed(self.fabric, totals, "sum") / len(self.dataset.test_labels)).tolist()
        return loss, 100 * wrong

    def seconds(self) -> float:
        """Return the time spent on the run, without the time between a stop and the next start."""
        return self.seconds_before + time.perf_counter() - self.started

    def result(self, status: str, command: str) -> Result:
        """Return how the run ended; the error is that of the last epoch, whatever the best was."""
        last = self.metrics[-1] if self.metrics and status == "finished" else {}
        best = min(self.metrics, key=lambda line: line["test_error"], default={})
        return {
            "status": status,
            "test_error": last.get("test_error"),
            "best_test_error": best.get("test_error"),
            "best_epoch": best.get("epoch"),
            "train_loss": last.get("train_loss"),
            "test_loss": last.get("test_loss"),
            "steps": self.step,
            "epochs": self.config.epochs,
            "seconds": round(self.seconds(), 3),
            "weights_sha256": weights_sha256(self.network),
            "parameters": sum(parameter.numel() for parameter in self.network.parameters()),
            "data": self.dataset.describe(),
            "versions": machine.versions(),
            "commit": self.commit,
            "command": command,
            "machine": machine.describe(),
            "hardware": {**self.hardware.to_dict(), "processes": self.fabric.world_size},
            "message": None,
        }

    def _show_events(self) -> None:
        if self.events is not None:
            for name, value in self.metrics[-1].items():
                if name not in ("epoch", "step"):
                    self.events.add_scalar(name, value, self.step)
            self.events.flush()  # a kill would take what is not written yet

    # -- checkpoints

    def save(self) -> None:
        """Save where the run stands."""
        rng = [_rng_state(self.fabric.device)]
        loss_sum, count = self.loss_sum, torch.tensor(self.loss_count, device=self.fabric.device)
        if self.fabric.world_size > 1:
            rng = _gathered(self.fabric, rng[0])
            loss_sum, count = _agreed(self.fabric, loss_sum, "sum"), _agreed(self.fabric, count, "sum")
        checkpoint = {
            "version": CHECKPOINT_VERSION,
            "step": self.step,
            "sampler": state.save(self.order, self.step),
            "batches": _flat(self.batches.config()),
            "model": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "precision": dict(self.fabric.strategy.precision.state_dict()),
            "rng": rng,
            "metrics": self.metrics,
            "loss_sum": float(loss_sum),
            "loss_count": int(count),
            "seen": torch.from_numpy(np.packbits(self.seen)),
            "seconds": self.seconds(),
        }

        def write() -> None:
            self.records.save_checkpoint(checkpoint)
            self.records.write_metrics(self.metrics)

        _on_first(self.fabric, write)

    def take_up_checkpoint(self) -> None:
        """Go on from the last whole checkpoint, if there is one."""
        checkpoint, faults = _on_first(self.fabric, self.records.load_checkpoint)
        for fault in faults:
            self.watch({"event": "warning", "message": fault})
        if checkpoint is None:
            return
        if checkpoint.get("version") != CHECKPOINT_VERSION:
            raise ValueError(
                f"{self.records.path} has a checkpoint of version {checkpoint.get('version')!r}, but this release "
                f"reads version {CHECKPOINT_VERSION}; give another folder"
            )
        if checkpoint["batches"] != _flat(self.batches.config()):
            raise ValueError(
                f"{self.records.path} has a checkpoint of a run on other data: {self.dataset.name} has changed since; "
                f"give another folder"
            )
        self.step = state.load(self.order, checkpoint["sampler"])
        self.network.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.fabric.strategy.precision.load_state_dict(checkpoint["precision"])
        if len(checkpoint["rng"]) == self.fabric.world_size:
            _set_rng_state(checkpoint["rng"][self.fabric.global_rank], self.fabric.device)
        else:  # on another number of processes dropout has to start a stream of its own; the samples stay the same
            torch.manual_seed(_seed_for(self.config, DROPOUT, self.fabric.global_rank, self.step))
        self.metrics = checkpoint["metrics"]
        if self.fabric.is_global_zero:  # the sums are of all processes
            self.loss_sum.fill_(checkpoint["loss_sum"])
            self.loss_count = checkpoint["loss_count"]
        packed = checkpoint["seen"].numpy()
        self.seen = np.unpackbits(packed, count=self.order.num_samples).astype(np.bool_)
        self.seconds_before = checkpoint["seconds"]
        # The process may have been killed between the two files, or an older checkpoint was taken up.
        _on_first(self.fabric, lambda: self.records.write_metrics(self.metrics))


def weights_sha256(network: nn.Module) -> str:
    """Return the SHA-256 of all parameters and buffers with their names, types and shapes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


# -- processes and devices


def _start(hardware: Hardware, config: RunConfig, network: nn.Module) -> Fabric:
    """Return Fabric with all processes running."""
    alone = hardware.devices * hardware.num_nodes == 1
    # A network that leaves out branches at random has steps in which some parameters have no gradient.
    drops_branches = any(getattr(module, "survival", 1.0) < 1.0 for module in network.modules())
    strategy: Any = "auto" if alone else DDPStrategy(find_unused_parameters=drops_branches)
    # Gradients of 1x1 convolutions can have either of two layouts that are the same in memory.
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides", UserWarning)
    try:
        fabric = Fabric(
            accelerator=hardware.accelerator,
            devices=hardware.devices,
            num_nodes=hardware.num_nodes,
            strategy=strategy,
            precision=config.precision,  # type: ignore[arg-type]
        )
    except Exception as error:  # Fabric and torch have many kinds of exceptions for a device that is not there
        here = ["cpu", *(["cuda"] * torch.cuda.is_available()), *(["mps"] * torch.backends.mps.is_available())]
        raise ValueError(
            f"accelerator={hardware.accelerator!r} with devices={hardware.devices} cannot be used here, where there is "
            f"{', '.join(here)}: {str(error).splitlines()[0]}"
        ) from error
    fabric.launch()
    torch.set_num_threads(hardware.threads)  # Fabric may have set it
    if fabric.world_size > 1:
        atexit.unregister(_leave_processes)  # once, however many runs there are
        atexit.register(_leave_processes)
    return fabric


def _leave_processes() -> None:
    """End the connection to the other processes; a thread of it that outlives the interpreter would abort this one."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _on_first(fabric: Fabric, action: Callable[[], T]) -> T:
    """Do something on the first process alone, and have its outcome, also an exception, on all."""
    if fabric.world_size == 1:
        return action()
    outcome: tuple[Any, BaseException | None] = (None, None)
    if fabric.is_global_zero:
        try:
            outcome = (action(), None)
        except Exception as error:
            outcome = (None, error)
    value, raised = fabric.broadcast(outcome)
    if raised is not None:
        raise raised
    return value


def _agreed(fabric: Fabric, value: Tensor, how: str) -> Tensor:
    """Return the sum, minimum or maximum over all processes."""
    return value if fabric.world_size == 1 else fabric.all_reduce(value.clone(), reduce_op=how)  # type: ignore[return-value]


def _gathered(fabric: Fabric, value: Tensor) -> list[Tensor]:
    """Return the values of all processes, in the order of their ranks."""
    own = value.to(fabric.device)
    values = [torch.empty_like(own) for _ in range(fabric.world_size)]
    torch.distributed.all_gather(values, own)
    return [value.cpu() for value in values]


def _rng_state(device: torch.device) -> Tensor:
    """Return the state of the generator that dropout draws from."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _set_rng_state(saved: Tensor, device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(saved, device)
    else:
        torch.set_rng_state(saved)


def _seed_for(config: RunConfig, *purpose: int) -> int:
    # numpy's SeedSequence mixes the words, so that neighbouring seeds and purposes have unrelated streams.
    return int(np.random.SeedSequence([config.seed, *purpose]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _flat(batches: Mapping[str, Any]) -> dict[str, Any]:
    """Return what names the batches, without the order, which the sampler's state names."""
    return {name: value for name, value in batches.items() if name != "order"}


# -- signals, events


class _StopRequest:
    """The signal that asked the run to stop, or 0."""

    asked = 0

    def ask(self, number: int, frame: object) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt  # asked twice: now
        self.asked = number


@contextmanager
def _stop_signals() -> Iterator[_StopRequest]:
    """Let Ctrl-C and a cluster's SIGTERM be noticed between two steps, so that the run can be saved."""
    request = _StopRequest()
    if threading.current_thread() is not threading.main_thread():  # only the main thread can have handlers
        yield request
        return
    before = {number: signal.signal(number, request.ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if request.asked:  # so late that the run ended; whoever started it still has to stop
        signal.raise_signal(request.asked)


@contextmanager
def _tensorboard(folder: Path, wanted: bool) -> Iterator[Any]:
    if not wanted:
        yield None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ValueError("tensorboard is not installed: pip install 'replenish[tensorboard]'") from None
    with SummaryWriter(str(folder)) as events:
        yield events


def _ignore(event: dict[str, Any]) -> None:
    pass
