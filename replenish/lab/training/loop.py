"""The trainer: one run, from a config to a result.

`train` prepares the run, restores a checkpoint if there is one, then trains epoch by epoch. A run is a function of its
config: initial weights, order, augmentation and dropout each have a random stream keyed by the seed. In a single CPU
process, a run that was killed and resumed ends with the same bits as an uninterrupted one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from torch import Tensor, nn

from replenish.draws import derived_seed
from replenish.lab import machine
from replenish.lab.config import Hardware, RunConfig
from replenish.lab.data import Augmentation, Batches, Dataset, load
from replenish.lab.models import training_loss
from replenish.lab.models.layers import weights_sha256
from replenish.lab.models.network_digest import name_of
from replenish.lab.runs import RunFolder
from replenish.lab.stopping import Stopped, StopRequest, stop_signals
from replenish.lab.training.checkpoint import DROPOUT, WEIGHTS, check_network, checkpoint_of, restore
from replenish.lab.training.measuring import DivergedError, OnlineMeter, check_finite, due, evaluate
from replenish.lab.training.networks import MakeModel, named_model
from replenish.lab.training.processes import agreed, on_first, start
from replenish.sharding import check_shares

#: Called with every event: `{"event": "start" | "step" | "epoch" | "warning" | "end", ...}`.
Watch = Callable[[dict[str, Any]], None]
Result = dict[str, Any]

#: Steps between checks of the loss and of signals. A check makes the processor wait for the device.
STEPS_BETWEEN_LOOKS = 20
SECONDS_BETWEEN_REPORTS = 0.2
#: torch's messages on a GPU and on a CPU. Only some of these errors have their own class.
SIGNS_OF_FULL_MEMORY = ("out of memory", "can't allocate memory")
#: Prefixes of the names of measurements. The last epoch's are in the result.
MEASURED = ("train_", "test_", "clean_", "held_out_")


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
    """Train a run to its end, or resume one that was stopped, and return its result.

    A run whose folder already has a result is not repeated. Ctrl-C saves and raises `Stopped`. A loss that is
    not finite ends the run with the status "diverged".

    Args:
        config: What to run.
        folder: The run's folder; see `replenish.lab.runs`.
        hardware: The hardware; by default one process with one thread.
        model: A function that makes your own network, with fresh weights from torch's generator; by default the
            network that `config.model` names. A folder with a run of another network is refused.
        dataset: Your own data; by default the dataset that `config.dataset` names.
        watch: Called with every event, for a display.
        tensorboard: Whether to write TensorBoard events into the folder as well.
        command: The command line, for the record.

    Example:
        >>> import tempfile
        >>> from replenish.lab import RunConfig, train
        >>> config = RunConfig(dataset="digits", model="wrn-10-1", epochs=1, pad=1, flip=False, decay_epochs=())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = train(config, folder)
        >>> result["status"], result["steps"]
        ('finished', 22)
    """
    hardware = hardware or Hardware()
    torch.set_num_threads(hardware.threads)
    torch.manual_seed(derived_seed(config.seed, WEIGHTS))  # before the network: equal seeds, equal initial weights
    if isinstance(model, nn.Module):
        raise TypeError("model should make a network, as a class or a function does, but got a network itself")
    dataset = dataset or load(
        config.dataset,
        images_per_class=config.images_per_class,
        image_size=config.image_size,
        held_out=config.held_out,
    )
    # Checked before processes start, so that there is one error, and nothing is written.
    order = config.build_order(len(dataset.train_labels), dataset.train_labels)
    check_shares(order, hardware.devices * hardware.num_nodes)
    network = (model or named_model(config, dataset))()
    fabric = start(hardware, config.precision, network)
    # `compare` puts a digest into the config's name. Any other name stays the same if the network changes.
    own = on_first(fabric, partial(name_of, network, model)) if model and "@" not in config.model else None
    run_folder = RunFolder(folder)
    with ExitStack() as stack:
        # The first process decides and writes; the others follow.
        on_first(fabric, lambda: stack.enter_context(run_folder.owned_by(config)))
        watch = watch if watch and fabric.is_global_zero else _ignore
        if (result := on_first(fabric, run_folder.result)) is not None:
            if result["data"]["fingerprint"] != dataset.fingerprint:
                raise ValueError(
                    f"{run_folder.path} holds a finished run on other data: {dataset.name} has changed since; give "
                    f"another folder"
                )
            check_network(run_folder.path, own, result)
            watch({"event": "end", "result": result})
            return result
        if tensorboard and fabric.is_global_zero:
            watch = stack.enter_context(_with_tensorboard(run_folder.path, watch))
        stop = stack.enter_context(stop_signals())
        try:
            run = Training(config, dataset, network, own, fabric, hardware, run_folder, watch, stop)
            run.restore_checkpoint()
            result = run.train(command)
        except RuntimeError as error:
            if not any(sign in str(error) for sign in SIGNS_OF_FULL_MEMORY):
                raise
            raise ValueError(
                f"{config.model} with batches of {config.batch_size} does not fit into the memory of {fabric.device}: "
                f"use precision 'bf16-mixed', more devices, or fewer jobs on one device; whole epochs are saved in "
                f"{folder}"
            ) from error
        on_first(fabric, lambda: run_folder.write_result(result))
        fabric.barrier()  # no process ends while another still waits for it
        run.watch({"event": "end", "result": result})
        return result


def build_optimizer(config: RunConfig, network: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer that a config names. The loop sets the learning rate of every step."""
    parameters, rate, decay = network.parameters(), config.learning_rate, config.weight_decay
    if config.optimizer == "adamw":
        return torch.optim.AdamW(parameters, rate, weight_decay=decay)
    return torch.optim.SGD(parameters, rate, momentum=config.momentum, weight_decay=decay, nesterov=config.nesterov)


class Training:
    """A run in progress: the state that a checkpoint holds, and the steps that change it."""

    def __init__(
        self,
        config: RunConfig,
        dataset: Dataset,
        network: nn.Module,
        own: str | None,
        fabric: Fabric,
        hardware: Hardware,
        folder: RunFolder,
        watch: Watch,
        stop: StopRequest,
    ) -> None:
        self.config, self.dataset, self.fabric, self.folder = config, dataset, fabric, folder
        self.watch, self.stop = watch, stop
        on_gpu = fabric.device.type == "cuda"
        # The user's own network may call `view`, which needs the usual layout.
        channels_last = on_gpu and own is None and ":" not in config.model and "@" not in config.model
        torch.backends.cudnn.benchmark = on_gpu  # all batches have one size, so the first step's choice fits all
        self.order = config.build_order(len(dataset.train_labels), dataset.train_labels)
        self.batches = Batches(
            self.order,
            dataset,
            augment=Augmentation(config.pad, config.flip, config.alternating_flip),
            device=fabric.device,
            channels_last=channels_last,
            num_replicas=fabric.world_size,
            rank=fabric.global_rank,
            seed=config.seed,
        )
        self.steps_per_epoch = config.steps_per_epoch(self.order.num_samples)
        self.total_steps = config.epochs * self.steps_per_epoch
        self.network = network  # unlike the wrapped network's, its state has plain names
        self.own_network = {} if own is None else {"network": own}
        self.initial_sha256 = weights_sha256(network)
        self.optimizer = build_optimizer(config, network)
        self.criterion = partial(F.cross_entropy, label_smoothing=config.label_smoothing)
        if channels_last:
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        module: nn.Module = torch.compile(network) if hardware.compile else network  # type: ignore[assignment]
        self.model, self.wrapped_optimizer = fabric.setup(module, self.optimizer)
        torch.manual_seed(derived_seed(config.seed, DROPOUT, fabric.global_rank))

        self.step = 0
        self.metrics: list[dict[str, Any]] = []
        self.meter = OnlineMeter(fabric, self.order.num_samples)
        self.seconds_before, self.started = 0.0, time.perf_counter()
        self.started_at: str | None = machine.now()  # a restored run keeps the time of its first start
        self.commit = machine.commit()  # now: the source may have changed by the end of a long run
        #: The hardware of each part of the run, with the current hardware last: a stopped run may resume elsewhere.
        used = {"processes": fabric.world_size, "device": fabric.device.type}
        # Fabric falls back to another precision where a device does not support the requested one.
        used["precision"] = fabric.strategy.precision.precision
        used |= machine.gpu(fabric.device)
        self.all_hardware = [{**hardware.to_dict(), **used}]

    def train(self, command: str) -> Result:
        """Train from the current step to the end, and return the result."""
        try:
            self._train()
        except DivergedError as error:
            return {**self.result("diverged", command), "message": str(error)}
        return self.result("finished", command)

    def _train(self) -> None:
        self.watch({"event": "start", "step": self.step, "total_steps": self.total_steps, "epochs": self.config.epochs})
        while self.step < self.total_steps:
            epoch = self.step // self.steps_per_epoch + 1
            self.train_until(epoch * self.steps_per_epoch)
            self.metrics.append(self.measure(epoch))
            self.save()
            self.watch({"event": "epoch", **self.metrics[-1]})
            if self.step < self.total_steps:
                self._stop_if_asked(saved=True)

    def train_until(self, stop_step: int) -> None:
        """Train up to a step, and sum the losses for `measure`."""
        self.model.train()
        reported, reported_step = time.perf_counter(), self.step
        for indices, (images, labels) in self.batches.steps(self.step, stop_step):
            learning_rate = self.learning_rate(self.step)
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate
            loss, _ = training_loss(self.model, images, labels, self.criterion)
            self.wrapped_optimizer.zero_grad()
            self.fabric.backward(self._weighted(loss, len(labels), len(indices)))
            self.wrapped_optimizer.step()

            self.meter.add(self.step, indices, loss, len(labels))
            self.step += 1
            if self._is_time_to_look(stop_step):
                self._stop_if_diverged()
                if self.step < stop_step:  # an epoch that is complete is measured first
                    self._stop_if_asked()
            now = time.perf_counter()
            if now - reported > SECONDS_BETWEEN_REPORTS:
                speed = (self.step - reported_step) * self.config.batch_size / (now - reported)
                numbers = {"loss": loss.item(), "learning_rate": learning_rate, "samples_per_second": speed}
                self.watch({"event": "step", "step": self.step, **numbers})
                reported, reported_step = now, self.step

    def measure(self, epoch: int) -> dict[str, Any]:
        """Return the line of metrics of the effective epoch that has just ended."""
        loss_sum, count = self.meter.totals()
        self.meter.begin_epoch()
        line: dict[str, Any] = {
            "epoch": epoch,
            "step": self.step,
            "learning_rate": self.learning_rate(self.step - 1),
            "train_loss": loss_sum / count,
            "test_loss": None,
            "test_error": None,
        }
        for name, split in due(self.config, epoch).items():
            measured = evaluate(self.fabric, self.network, self.batches, split)
            line |= {f"{name}_{what}": value for what, value in measured.items()}
        check_finite(line, self.order.batch(self.step - 1))
        return {**line, "unseen": int(np.count_nonzero(~self.meter.seen)), "seconds": round(self.seconds(), 3)}

    def result(self, status: str, command: str) -> Result:
        """Return how the run ended. Its test error is the last epoch's, not the best one."""
        last = self.metrics[-1] if self.metrics and status == "finished" else {}
        tested = [line for line in self.metrics if line["test_error"] is not None]
        best = min(tested, key=lambda line: line["test_error"], default={})
        *earlier, hardware = self.all_hardware
        return {
            "status": status,
            **dict.fromkeys(("test_error", "test_loss", "train_loss")),  # of a run that diverged
            **{name: value for name, value in last.items() if name.startswith(MEASURED)},
            "best_test_error": best.get("test_error"),
            "best_epoch": best.get("epoch"),
            "steps": self.step,
            "epochs": self.config.epochs,
            "seconds": round(self.seconds(), 3),
            "started_at": self.started_at,
            "ended_at": machine.now(),
            "initial_sha256": self.initial_sha256,
            "weights_sha256": weights_sha256(self.network),
            "parameters": sum(parameter.numel() for parameter in self.network.parameters()),
            **self.own_network,
            "data": self.dataset.describe(),
            "versions": machine.versions(),
            "commit": self.commit,
            "command": command,
            "machine": machine.describe(),
            "hardware": hardware,
            "earlier_hardware": earlier,
            "message": None,
        }

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        return self.config.learning_rate_at(step, self.steps_per_epoch)

    def seconds(self) -> float:
        """Return the time spent on the run, without the times between a stop and the next start."""
        return self.seconds_before + time.perf_counter() - self.started

    def save(self) -> None:
        """Save the state of the run."""
        checkpoint = checkpoint_of(self)

        def write() -> None:
            self.folder.checkpoints.save(checkpoint)
            self.folder.write_metrics(self.metrics)

        on_first(self.fabric, write)

    def restore_checkpoint(self) -> None:
        """Resume from the last complete checkpoint, if there is one."""
        checkpoint, faults = on_first(self.fabric, self.folder.checkpoints.load)
        for fault in faults:
            self.watch({"event": "warning", "message": fault})
        if checkpoint is not None:
            restore(self, checkpoint)
            # The file may have other epochs, after a kill between two writes or if the last checkpoint is damaged.
            on_first(self.fabric, lambda: self.folder.write_metrics(self.metrics))

    def _weighted(self, loss: Tensor, own: int, whole: int) -> Tensor:
        """Scale the loss so that the mean of all processes' gradients is the gradient of the whole batch."""
        shares = own * self.fabric.world_size
        return loss if shares == whole else loss * (shares / whole)

    def _is_time_to_look(self, stop_step: int) -> bool:
        # Several processes have to look at the same steps, since looking exchanges values between them.
        alone = self.fabric.world_size == 1 and (self.stop.asked > 0 or self.fabric.device.type == "cpu")
        return alone or self.step % STEPS_BETWEEN_LOOKS == 0 or self.step == stop_step

    def _stop_if_diverged(self) -> None:
        if (step := self.meter.bad_step()) is None:
            return
        raise DivergedError(
            f"the loss is not a finite number at step {step} (effective epoch {step / self.steps_per_epoch:.2f}, "
            f"learning rate {self.learning_rate(step):g}); the batch's samples are {self.order.batch(step).tolist()}"
        )

    def _stop_if_asked(self, *, saved: bool = False) -> None:
        asked = torch.tensor(self.stop.asked, device=self.fabric.device)
        if number := int(agreed(self.fabric, asked, "max")):
            if not saved:
                self.save()
            raise Stopped(
                f"stopped at step {self.step} of {self.total_steps} and saved in {self.folder.path}; give the same "
                f"command again to resume",
                number,
            )


@contextmanager
def _with_tensorboard(folder: Path, watch: Watch) -> Iterator[Watch]:
    """Yield a watch that also writes the metrics of every epoch as TensorBoard events."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ValueError("tensorboard is not installed: pip install 'replenish[tensorboard]'") from None
    with SummaryWriter(str(folder)) as events:

        def write(event: dict[str, Any]) -> None:
            if event["event"] == "epoch":
                for name, value in event.items():
                    if name not in ("event", "epoch", "step") and value is not None:
                        events.add_scalar(name, value, event["step"])
                events.flush()  # a kill would lose events that are not written yet
            watch(event)

        yield write


def _ignore(event: dict[str, Any]) -> None:
    pass
