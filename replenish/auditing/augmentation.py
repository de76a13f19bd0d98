"""Does random augmentation repeat, between workers or between epochs? The fault of generators that workers inherit."""

from __future__ import annotations

from typing import Any

from replenish.auditing.findings import FAULT, OK, WARNING, Finding
from replenish.auditing.hashing import item_hash
from replenish.auditing.preserve_state import preserved_state
from replenish.auditing.reading import loader_class, uncollated

_CALLS = 3  # of each worker


class Probe:
    """A dataset that gives the first sample for every index, by its hash."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return 2**62

    def __getitem__(self, index: int) -> bytes:
        return item_hash(self.dataset[0])


def augmentation(loader: Any) -> Finding | None:
    """Ask the first sample of the dataset again and again, here and in the loader's workers; None without a dataset."""
    dataset: Any = getattr(loader, "dataset", None)
    if not hasattr(dataset, "__getitem__") or not hasattr(loader, "num_workers"):
        return None
    with preserved_state(loader):
        try:
            here = {item_hash(dataset[0]) for _ in range(4)}
        except Exception as error:  # whatever a user's dataset raises
            text = f"Not known: dataset[0] raised {type(error).__name__}: {error}"
            return Finding("augmentation", WARNING, text, {})
        if len(here) == 1:
            return Finding("augmentation", OK, "A sample is the same each time: there is no random augmentation.", {})
        if loader.num_workers == 0:
            return Finding("augmentation", OK, "A sample is another each time: augmentation is random.", {})
        workers, passes = loader.num_workers, []
        probe = loader_class(loader)(
            Probe(dataset),
            batch_size=None,
            sampler=range(_CALLS * workers),
            num_workers=workers,
            worker_init_fn=loader.worker_init_fn,
            multiprocessing_context=loader.multiprocessing_context,
            persistent_workers=loader.persistent_workers,
            collate_fn=uncollated,
        )
        for _ in range(2):
            drawn = list(probe)  # the samples go to the workers in turn
            passes.append([tuple(drawn[worker::workers]) for worker in range(workers)])
    numbers: dict[str, int | float] = {"workers": workers}
    if workers > 1 and len(set(passes[0])) < workers:
        text = (
            f"Workers augment alike: of {workers} workers only {len(set(passes[0]))} differ in their random numbers; "
            f"seed each by torch.initial_seed(), not with one number for all."
        )
        return Finding("augmentation", FAULT, text, numbers)
    if set(passes[0]) & set(passes[1]):
        text = (
            "Augmentation repeats in every epoch: workers begin each time with the same random state; make the "
            "generator in the worker, or seed it by torch.initial_seed()."
        )
        return Finding("augmentation", FAULT, text, numbers)
    return Finding("augmentation", OK, f"Augmentation is random, and another in each of {workers} workers.", numbers)
