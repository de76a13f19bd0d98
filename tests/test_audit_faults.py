"""The table of docs/audit.md: each planted fault is found at the smallest size stated there."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
from audited_loaders import Augmented, Buffered, of_rank, seed_all_alike, with_epochs
from torch.utils.data import (
    DataLoader,
    Dataset,
    RandomSampler,
    Sampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from replenish import audit
from replenish.auditing import Audit
from replenish.auditing.claims import Claim
from replenish.auditing.judge import judge
from replenish.auditing.record import Record
from replenish.measure.reading import Epoch

PAGE = Path(__file__).parents[1] / "docs" / "audit.md"


def data(number: int) -> TensorDataset:
    return TensorDataset(torch.arange(number), torch.arange(number) * 10 // number)


class Periodic(Sampler[int]):
    """Alternates between two permutations."""

    def __init__(self, number: int) -> None:
        self.number, self.passes = number, count()

    def __len__(self) -> int:
        return self.number

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(next(self.passes) % 2)
        return iter(torch.randperm(self.number, generator=generator).tolist())


class Forgetful(Sampler[int]):
    """A sampler with a state, as torchdata expects; its state has the place only if `kept`."""

    def __init__(self, number: int, kept: bool) -> None:
        self.number, self.kept, self.drawn, self.start = number, kept, 0, 0

    def __len__(self) -> int:
        return self.number

    def __iter__(self) -> Iterator[int]:
        order = torch.randperm(self.number, generator=torch.Generator().manual_seed(3)).tolist()
        start, self.start = self.start, 0
        for place in range(start, self.number):
            self.drawn = place + 1
            yield order[place]

    def state_dict(self) -> dict[str, int]:
        return {"drawn": self.drawn if self.kept else 0}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.start = state["drawn"]


def _missing_set_epoch() -> Audit:
    return audit(of_rank(data(24), 0), 2)


def _set_epoch_0() -> Audit:
    return audit(**with_epochs([of_rank(data(20), rank) for rank in range(2)], always=0), epochs=2)


def _stale_subset() -> Audit:
    return audit(DataLoader(data(20), sampler=SubsetRandomSampler(range(19))), 2)


def _outside() -> Audit:
    return audit(DataLoader(data(20), sampler=SubsetRandomSampler(range(21))), 2)


def _starved_class() -> Audit:
    labels = np.arange(250) * 10 // 250
    weights = np.where(labels == 7, 0.0, 1.0)
    return audit(DataLoader(data(250), sampler=WeightedRandomSampler(weights.tolist(), 250)), 2, labels)


def _rare_class() -> Audit:
    labels = np.arange(1000) * 10 // 1000
    weights = np.where(labels == 7, 0.02, 1.0)
    return audit(DataLoader(data(1000), sampler=WeightedRandomSampler(weights.tolist(), 1000)), 3, labels)


def _period_2() -> Audit:
    return audit(DataLoader(data(14), sampler=Periodic(14)), 3)


def _duplicates() -> Audit:
    return audit(DataLoader(Subset(data(20), [*range(10), 3]), shuffle=True), 2)


def _leak() -> Audit:
    dataset, order = data(100), torch.randperm(100, generator=torch.Generator().manual_seed(0)).tolist()
    return audit(
        {
            "train": DataLoader(Subset(dataset, order[:80]), shuffle=True),
            "validation": DataLoader(Subset(copy.deepcopy(dataset), order[79:])),
        },
        2,
    )


def _forgets_its_place() -> Audit:
    return audit(DataLoader(data(10), batch_size=2, sampler=Forgetful(10, kept=False)), 2)


def _uneven_ranks() -> Audit:
    dataset = data(21)
    parts = [Subset(dataset, range(10)), Subset(dataset, range(10, 21))]
    return audit([DataLoader(part, batch_size=5, shuffle=True) for part in parts], 2)


def _equal_ranks() -> Audit:
    return audit(**with_epochs([of_rank(data(4), 0) for _ in range(2)]), epochs=2)


def _seeds_of_ranks() -> Audit:
    return audit(**with_epochs([of_rank(data(100), rank, seed=rank) for rank in range(2)]))


def _short_batch() -> Audit:
    return audit(DataLoader(data(67), batch_size=64, shuffle=True), 2)


def _never_seen() -> Audit:
    return audit(DataLoader(data(1000), sampler=RandomSampler(range(1000), replacement=True, num_samples=34)), 3)


def _dropped() -> Audit:
    return audit(DataLoader(data(101), batch_size=10, drop_last=True), 2)


def _sorted() -> Audit:
    return audit(DataLoader(data(1000), batch_size=10), 2, np.arange(1000) // 100)


def _small_buffer() -> Audit:
    torch.manual_seed(3)
    return audit(DataLoader(Buffered(20_000, 100), batch_size=50), 2, lambda item: item // 2000)


def _workers_alike() -> Audit:
    return audit(DataLoader(Augmented("numpy"), shuffle=True, num_workers=2, worker_init_fn=seed_all_alike), 2)


def _augmentation_repeats() -> Audit:
    return audit(DataLoader(Augmented("own"), shuffle=True, num_workers=1), 2)


def _only_batches() -> Audit:
    class Batches:
        def __iter__(self) -> Iterator[list[int]]:
            for start in torch.randperm(20).tolist():
                yield list(range(5 * start, 5 * start + 5))

    return audit(Batches(), 2)


def _every_worker_reads_all() -> Audit:
    return audit(DataLoader(Buffered(100, 100), batch_size=10, num_workers=2), 2)


#: Row of the page: (audit, question that finds the fault, level).
PLANTED: dict[str, tuple[Callable[[], Audit], str, str]] = {
    "`set_epoch` is never called": (_missing_set_epoch, "epochs", "fault"),
    "`set_epoch(0)` before every epoch": (_set_epoch_0, "epochs", "fault"),
    "orders of period 2": (_period_2, "epochs", "fault"),
    "a `SubsetRandomSampler` made for a shorter dataset": (_stale_subset, "coverage", "warning"),
    "a sampler made for a longer dataset": (_outside, "coverage", "fault"),
    "duplicates in `Subset.indices`": (_duplicates, "coverage", "fault"),
    "`drop_last` without shuffling": (_dropped, "coverage", "fault"),
    "most samples never seen": (_never_seen, "coverage", "warning"),
    "a class with weight 0": (_starved_class, "classes", "fault"),
    "a class with a fiftieth of its share": (_rare_class, "classes", "warning"),
    "training samples in the validation": (_leak, "validation: leak", "fault"),
    "a sampler whose state forgets its place": (_forgets_its_place, "resuming", "fault"),
    "unequal numbers of batches per rank": (_uneven_ranks, "ranks", "fault"),
    "all ranks draw the same": (_equal_ranks, "ranks", "fault"),
    "ranks shuffle with different seeds": (_seeds_of_ranks, "ranks", "fault"),
    "only whole batches are shuffled": (_only_batches, "epochs", "warning"),
    "every worker reads the whole stream": (_every_worker_reads_all, "coverage", "fault"),
    "workers augment alike": (_workers_alike, "augmentation", "fault"),
    "augmentation that repeats in every epoch": (_augmentation_repeats, "augmentation", "fault"),
    "a last batch of 3 of 64": (_short_batch, "batches", "warning"),
    "sorted labels, not shuffled": (_sorted, "labels", "fault"),
    "sorted labels, a buffer of 100": (_small_buffer, "labels", "fault"),
}


@pytest.mark.parametrize("fault", list(PLANTED))
def test_a_planted_fault_is_found(fault: str) -> None:
    torch.manual_seed(1)
    make, name, level = PLANTED[fault]
    found = make()
    assert found[name].level == level, found


def test_the_page_has_the_same_faults() -> None:
    rows = re.findall(r"^\| (.+?) \| `[\w: ]+` \| (fault|warning) \|", PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == {fault: level for fault, (_, _, level) in PLANTED.items()}


def test_ranks_that_draw_the_same_have_no_other_fault() -> None:
    torch.manual_seed(0)
    found = audit([DataLoader(data(100), 10, shuffle=True, generator=torch.Generator().manual_seed(1)) for _ in "ab"])
    assert [each.name for each in found.findings if each.level == "fault"] == ["ranks"], found


def test_disjoint_subsets_of_ranks_are_healthy() -> None:
    dataset = data(100)
    parts = [Subset(dataset, range(rank, 100, 2)) for rank in range(2)]
    found = audit([DataLoader(part, batch_size=5, shuffle=True) for part in parts])
    assert found.level == "ok", found
    assert "No sample is drawn by two" in found["ranks"].sentence
    assert found["coverage"].sentence == "Every one of the 100 samples comes once in every epoch."


class Opaque(Dataset[int]):
    """A dataset that hides its contents; every process of a training makes its own."""

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> int:
        return index


def test_ranks_that_divide_separately_made_datasets_are_healthy() -> None:
    loaders = [of_rank(Opaque(), rank) for rank in range(2)]
    found = audit(loaders, before_epoch=lambda epoch: [each.sampler.set_epoch(epoch) for each in loaders])
    assert found.level == "ok", found
    assert found["coverage"].sentence == "Every one of the 100 samples comes once in every epoch."
    own = [DataLoader(Subset(Opaque(), range(rank, 100, 2)), batch_size=5, shuffle=True) for rank in range(2)]
    found = audit(own)
    assert found.level == "ok", found
    assert found["coverage"].sentence == "Every one of the 100 samples comes once in every epoch."


def test_ranks_that_overlap_on_separately_made_datasets_are_found() -> None:
    wrong = [of_rank(Opaque(), 0) for _ in range(2)]
    found = audit(wrong, before_epoch=lambda epoch: [each.sampler.set_epoch(epoch) for each in wrong])
    assert found["ranks"].level == "fault", found
    unknown = audit([DataLoader(Opaque(), batch_size=5, shuffle=True) for _ in range(2)])
    assert unknown["ranks"].level == "warning", unknown
    assert "unless each rank has data of its own" in unknown["ranks"].sentence
    assert unknown["coverage"].sentence == "Every one of the 100 samples comes once in every epoch."


def test_a_sampler_whose_state_keeps_its_place_is_healthy() -> None:
    found = audit(DataLoader(data(10), batch_size=2, sampler=Forgetful(10, kept=True)), 2)
    assert found["resuming"].level == "ok"


@pytest.mark.parametrize(("buffer", "shards"), [(100, 1), (1000, 1), (4000, 1), (100, 20), (1000, 20)])
def test_the_size_of_a_buffer_is_estimated_within_a_third(buffer: int, shards: int) -> None:
    torch.manual_seed(3)
    found = audit(DataLoader(Buffered(60_000, buffer, shards), batch_size=50), 2, lambda item: item // 6000)["labels"]
    assert 0.67 * buffer < found.numbers["buffer_like"] < 1.5 * buffer, found


def test_epochs_left_early_are_compared_up_to_their_end() -> None:
    order = np.random.Generator(np.random.Philox(1)).permutation(1000)
    same = [Epoch.of([order[:50], order[50:100]], whole=False, number=0) for _ in range(2)]
    _, findings = judge([Record(same, 1000)], Claim("DistributedSampler", set_epoch="DistributedSampler"))
    found = {each.name: each for each in findings}
    assert found["epochs"].level == "fault"
    assert "was at epoch 0 in all of them" in found["epochs"].sentence
    assert found["coverage"].level == "ok"
    assert "No pass reached its end" in found["coverage"].sentence


def test_equal_indices_of_different_datasets_are_not_a_leak() -> None:
    found = audit({"train": DataLoader(data(50), shuffle=True), "test": DataLoader(data(40))})
    assert "different datasets" in found["test: leak"].sentence
    assert found.level == "ok"


def test_a_dict_of_loaders_needs_two() -> None:
    with pytest.raises(ValueError, match=r"at least two loaders by name, the training first, but got \['train'\]"):
        audit({"train": DataLoader(data(50))})


def test_samples_of_ranks_on_other_machines_are_not_missing() -> None:
    order = np.arange(100)
    ranks = [Record([Epoch.of(np.split(order[rank::4], 5)) for _ in range(3)], 100) for rank in range(2)]
    _, findings = judge(ranks, Claim("DistributedSampler", replicas=4))
    found = {each.name: each for each in findings}
    assert found["coverage"].level == "ok"
    assert found["coverage"].sentence.startswith("2 ranks of 4 see 50 of the 100 samples in an epoch; the others")
