"""What an audit needs of a loader in addition to its draws: its claim, its samples and labels, and probes."""

from __future__ import annotations

import io
import json
import os
import signal
import tempfile
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import IterableDataset, TensorDataset

from replenish.auditing.claims import claim_of
from replenish.auditing.probes import augmentation, resuming
from replenish.auditing.reading import sampler_chain, weights_of
from replenish.auditing.record import identify
from replenish.orders.protocol import Order
from replenish.torch.describe import describe_loader
from replenish.torch.shuffle_patch import ShufflePatch

_PROBE_SECONDS = 60


def loader_facts(loader: Any) -> tuple[dict[str, Any], bytes]:
    """Return the facts of a loader as JSON can hold them, and its arrays as a .npz file."""
    is_stream = isinstance(loader.dataset, IterableDataset)
    identity = None if is_stream else identify(loader.dataset)
    size = 1 if identity is None else len(loader.dataset)
    batch_size = describe_loader(loader).batch_size or 1
    arrays: dict[str, Any] = {}
    if identity is not None:
        arrays = {"labels": labels_of(loader.dataset), "samples": identity.samples, "weights": weights_of(loader)}
    with io.BytesIO() as file:
        np.savez_compressed(file, **{name: value for name, value in arrays.items() if value is not None})
        payload = file.getvalue()
    sampler = type(sampler_chain(loader)[-1]).__name__
    name = type(loader.dataset).__name__ if is_stream else sampler
    claim = asdict(claim_of(loader, size, int(batch_size)))
    root = None if identity is None else {"root": identity.root, "root_size": identity.root_size}
    return {"name": f"{type(loader).__name__} ({name})", "claim": claim, "identity": root}, payload


def order_of(sampler: Any, patch: ShufflePatch | None = None) -> dict[str, Any] | None:
    """Return the order of a sampler, the steps at which a pass may begin, and its share; None if it has no order.

    The sampler is one of this library's batch samplers, or one whose shuffling `patch` replaces, after a pass began.
    """
    if patch is not None and (latest := patch.latest_pass(sampler)) is not None:
        replacing, step, sizes = latest
        return {"config": dict(replacing.config()), "steps": [step], "replicas": sizes.num_replicas, "rank": sizes.rank}
    order = getattr(sampler, "order", None)
    if not isinstance(order, Order):
        return None
    return {
        "config": dict(order.config()),
        # Its `epoch` is the latest pass's, or the next one's.
        "steps": [epoch * order.steps_per_epoch for epoch in (sampler.epoch, sampler.epoch + 1)],
        "replicas": getattr(sampler, "num_replicas", 1) or 1,
        "rank": getattr(sampler, "rank", 0) or 0,
    }


def labels_of(dataset: Any) -> Any:
    """Return the labels in a dataset's public attributes, such as torchvision's `targets`; None if there are none."""
    if hasattr(dataset, "indices") and hasattr(dataset, "dataset"):
        below = labels_of(dataset.dataset)
        return None if below is None else below[np.asarray(dataset.indices)]
    if isinstance(dataset, TensorDataset) and len(dataset.tensors) > 1:
        found: Any = dataset.tensors[-1]
    else:
        found = getattr(dataset, "targets", getattr(dataset, "labels", None))
    try:
        values = np.asarray(found)
        length = len(dataset)
    except (TypeError, ValueError, RuntimeError):  # ragged, on another device, without a length
        return None
    whole = values.dtype.kind in "iub"  # floats may be targets of a regression, which are not classes
    return values if whole and values.shape == (length,) else None


def probe(loader: Any, recorder: Any) -> list[dict[str, Any]]:
    """Probe a loader in a forked copy of this process, so that nothing here changes.

    The probes check whether workers augment alike, and whether a sampler with a state keeps its place. There are no
    findings if processes cannot be forked, or if the copy does not end in time.
    """
    stateful = any(hasattr(each, "load_state_dict") for each in sampler_chain(loader))
    if not hasattr(os, "fork") or not (loader.num_workers or stateful) or isinstance(loader.dataset, IterableDataset):
        return []
    with tempfile.NamedTemporaryFile(prefix="replenish-probe-") as file:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about forking with threads; a loader forks its workers too
            child = os.fork()
        if child == 0:
            try:
                recorder.active = False
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(_PROBE_SECONDS)
                asked = [resuming(loader, None, 2**20), augmentation(loader) if loader.num_workers else None]
                Path(file.name).write_text(json.dumps([asdict(each) for each in asked if each is not None]))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        written = Path(file.name).read_text()
    return json.loads(written) if written else []
