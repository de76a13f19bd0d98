"""The order whose steps `what` and `when` print: from a run's folder, a saved state, or a name and sizes.

Labels and file names of its samples are added if the data can be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replenish import state
from replenish.lab.data import DataError, Dataset, load
from replenish.lab.runs import RunFolder
from replenish.lab.runs.folder import CONFIG
from replenish.orders.building import COMPOSED, order_from_config
from replenish.orders.mixture import mixture_in
from replenish.orders.protocol import Order

#: The fields that identify an order's config, or a saved state, among the contents of a checkpoint.
OF_A_CONFIG = {"stream", "order", "num_samples", "batch_size"}
OF_A_STATE = {"version", "step", *OF_A_CONFIG}


@dataclass(frozen=True)
class OrderSource:
    """An order, with what is known about its run and its samples.

    Attributes:
        order: The order.
        about: A description of the order, for people.
        steps_per_epoch: The steps of an effective epoch.
        steps: How many steps have been taken; None if unknown.
        dataset: The data; None if they are not named or cannot be read.
        remark: Why the data cannot be read.
    """

    order: Order
    about: str
    steps_per_epoch: int
    steps: int | None = None
    dataset: Dataset | None = None
    remark: str = ""

    def sample(self, index: int) -> dict[str, Any]:
        """Return the index of a sample and, where known, its label, class and file; in a mixture also its dataset."""
        known: dict[str, Any] = {"sample": index}
        if (mixture := mixture_in(self.order)) is not None:
            sources, indices = mixture.locate([index])
            known |= {"dataset": int(sources[0]), "index": int(indices[0])}
        if self.dataset is not None:
            label = int(self.dataset.train_labels[index])
            known |= {"label": label, "class": self.dataset.class_names[label]}
            if self.dataset.train_files is not None:
                known["file"] = str(self.dataset.train_files[index])
        return known


def read_source(path: Path, dataset: str | None, facts: Mapping[str, Any]) -> OrderSource:
    """Return the order of a run's folder, or of a file that holds a saved state, an order's config or a run's config.

    Args:
        path: The folder, a JSON file, or a file that `torch.save` wrote. No code in the file is run.
        dataset: The data of a state's samples, for their labels; the config of a run names its data.
        facts: Arrays of which a state holds only checksums, by the names of the order's options.

    Raises:
        OSError: The path cannot be read.
        ValueError: It holds no order, several orders, or an order of other data.
    """
    states = [] if path.is_dir() else _states(_content(path))
    if path.is_dir() or (path.name == CONFIG and not states):
        if dataset is not None or facts:
            raise ValueError(f"--dataset and --option should be left out, since the run in {path} names its own")
        return _of_run(RunFolder(path if path.is_dir() else path.parent))
    if len(states) != 1:
        kind = f"{len(states)} different ones" if states else "none"
        raise ValueError(
            f"{path} should hold one state that state_dict() of a sampler returned or an order's config, or be a run's "
            f"folder, but holds {kind}"
        )
    (found,) = states
    order = order_from_config(found, **facts)
    if "step" not in found:
        return of_order(order, f"{type(order).__name__}, as {path.name} names it", dataset)
    about = f"{type(order).__name__}, as saved in {path.name} before step {found['step']:,}"
    return of_order(order, about, dataset, steps=state.load(order, found))


def of_order(order: Order, about: str, dataset: str | None, steps: int | None = None) -> OrderSource:
    """Return an order with the data of its samples, if `dataset` names them."""
    loaded = None if dataset is None else load(dataset)
    if loaded is not None and len(loaded.train_labels) != order.num_samples:
        raise ValueError(
            f"--dataset should have the {order.num_samples} samples of the order, but {dataset} has "
            f"{len(loaded.train_labels)} training images"
        )
    return OrderSource(order, about, order.steps_per_epoch, steps, loaded)


def _of_run(folder: RunFolder) -> OrderSource:
    """Return the order of a run, with its data if they can be read; raise if the data have changed since the run."""
    config, result, metrics = folder.config(), folder.result(), folder.metrics()
    try:
        dataset = load(config.dataset, images_per_class=config.images_per_class, image_size=config.image_size)
        remark = ""
    except (OSError, DataError) as error:
        if result is None:  # the number of samples is unknown
            raise
        dataset, remark = None, f"Labels are left out, for {config.dataset} cannot be read: {error}"
    if result is not None and dataset is not None and result["data"]["fingerprint"] != dataset.fingerprint:
        raise ValueError(f"{config.dataset} has changed since the run in {folder.path}: its samples are others now")
    count = len(dataset.train_labels) if dataset is not None else int(result["data"]["train_images"])  # type: ignore[index]
    order = config.build_order(count, None if dataset is None else dataset.train_labels)
    steps = int(result["steps"]) if result else int(metrics[-1]["step"]) if metrics else None
    about = f"{config.order}, seed {config.seed}, as the run in {folder.path} draws it"
    return OrderSource(order, about, config.steps_per_epoch(count), steps, dataset, remark)


def _content(path: Path) -> object:
    """Return the content of a JSON file or of one that torch wrote."""
    with path.open("rb") as file:
        begins_like_json = file.read(64).lstrip()[:1] in (b"{", b"[")
    if begins_like_json:
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            raise ValueError(f"{path} should hold JSON, but is garbled") from None
    import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds of exceptions
        raise ValueError(
            f"{path} should be JSON or a file that torch.load reads with weights_only=True, but: "
            f"{type(error).__name__}; save the sampler's state_dict() as JSON"
        ) from None


def _states(content: object) -> list[dict[str, Any]]:
    """Return the different saved states in a file's content or, if there are none, the configs of orders."""
    found = list(_dicts_with(OF_A_STATE, content)) or list(_dicts_with(OF_A_CONFIG, content))
    if not found and isinstance(content, Mapping) and content.get("order") in COMPOSED:
        found = [dict(content)]  # perhaps written by hand: `order_from_config` reports what is missing
    return list({json.dumps(each, sort_keys=True): each for each in found}.values())


def _dicts_with(fields: set[str], content: object) -> Iterator[dict[str, Any]]:
    """Yield the dicts that have these fields, also within dicts and lists: checkpoints keep states in many places."""
    if isinstance(content, Mapping):
        if set(content) >= fields:
            yield dict(content)
            return
        content = list(content.values())
    if isinstance(content, (list, tuple)):
        for value in content:
            yield from _dicts_with(fields, value)
