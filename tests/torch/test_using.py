"""`using`: loaders that shuffle get the order, and nothing else of them changes."""

from __future__ import annotations

import pickle
from itertools import chain
from typing import Any

import pytest
import torch
from contracts import as_lists
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler
from torchdata.stateful_dataloader import StatefulDataLoader

from replenish import RandomReshuffling, SequencedReplacement
from replenish.draws import derived_seed
from replenish.orders.fitted import FittedOrder, check_fittable
from replenish.orders.registry import ORDERS
from replenish.torch import OrderBatchSampler, using

DATA = list(range(50))


def loader(**options: Any) -> DataLoader[Any]:
    return DataLoader(DATA, collate_fn=list, **{"batch_size": 8, "shuffle": True, **options})


def stream(number: int, start: int, stop: int, seed: int = 3, kind: str = "loader") -> list[list[int]]:
    """The batches of loader `number` in their full size."""
    order = SequencedReplacement(50, 8, seed=derived_seed(seed, kind, number))
    return as_lists(order.batches(start, stop))


def test_a_pass_is_the_order_in_the_sizes_of_the_loader() -> None:
    with using("srs", seed=3) as replacement:
        made = loader()
        first, second = list(made), list(made)
    assert len(made) == 7
    drawn = stream(0, 0, 14)
    assert first == [*drawn[:6], drawn[6][:2]]  # 50 = 6 * 8 + 2: the last batch is as short as torch's
    assert second == [*drawn[7:13], drawn[13][:2]]
    (record,) = replacement.records
    assert record.said().endswith("N = 50, B = 8, 1 process: replaced by srs, seed 3")
    assert "test_using.py:" in record.place


def test_loaders_keep_the_order_after_the_context_and_others_do_not_get_it() -> None:
    with using("srs", seed=3):
        made = loader(drop_last=True)
    assert list(made) == stream(0, 0, 6)
    after = loader()
    assert sorted(index for batch in after for index in batch) == DATA
    assert isinstance(made.sampler, RandomSampler)  # what frameworks look at is as it was
    assert type(made.batch_sampler) is BatchSampler


def fittable(name: str) -> bool:
    try:
        check_fittable(name, {})
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", [name for name in ORDERS if fittable(name)])
@pytest.mark.parametrize("drop_last", [True, False])
def test_all_orders_give_batches_of_torchs_sizes(name: str, drop_last: bool) -> None:
    with using(name):
        ours = [len(batch) for batch in loader(drop_last=drop_last)]
    assert ours == [len(batch) for batch in loader(drop_last=drop_last)]


def test_reshuffling_is_torchs_law_through_our_code() -> None:
    with using("reshuffling", seed=3):
        made = loader()
        epochs = [[index for batch in made for index in batch] for _ in range(3)]
    assert all(sorted(epoch) == DATA for epoch in epochs)
    expected = as_lists(RandomReshuffling(50, 50, seed=derived_seed(3, "loader", 0)).batches(0, 3))
    assert epochs == expected


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"shuffle": False}, "it does not shuffle"),
        ({"shuffle": None, "sampler": SequentialSampler(DATA)}, "it does not shuffle"),
        ({"shuffle": None, "sampler": DistributedSampler(DATA, 2, 0, shuffle=False)}, "it does not shuffle"),
        ({"shuffle": None, "sampler": RandomSampler(DATA, replacement=True)}, "draws with replacement"),
        ({"shuffle": None, "sampler": RandomSampler(DATA, num_samples=60)}, "more than once in an epoch"),
        ({"shuffle": None, "sampler": SubsetRandomSampler(DATA)}, "a sampler of its own, SubsetRandomSampler"),
        ({"shuffle": None, "sampler": WeightedRandomSampler([1.0] * 50, 50)}, "of its own, WeightedRandomSampler"),
        ({"batch_size": 51, "drop_last": True}, "it drops its only batch"),
    ],
)
def test_what_is_left_alone_says_why(options: dict[str, Any], reason: str) -> None:
    with using("srs") as replacement:
        loader()
        list(loader(**options))
    assert [record.order is None for record in replacement.records] == [False, True]
    assert reason in replacement.records[1].said()


def test_batches_of_a_loader_that_is_left_alone_are_said_however_they_are_given() -> None:
    with using("srs") as replacement:
        loader()
        DataLoader(DATA, batch_sampler=BatchSampler(SequentialSampler(DATA), 8, drop_last=False))
    assert "N = 50, B = 8, 1 process: left alone" in replacement.records[1].said()


def test_samplers_of_ours_and_iterable_datasets_are_left_alone() -> None:
    class Counting(IterableDataset[int]):
        def __iter__(self) -> Any:
            return iter(range(4))

    order = SequencedReplacement(50, 8, seed=9)
    with using("srs") as replacement:
        loader()
        ours = DataLoader(DATA, batch_sampler=OrderBatchSampler(order), collate_fn=list)
        assert list(ours) == as_lists(order.batches(0, 7))
        assert list(DataLoader(Counting(), batch_size=None)) == [0, 1, 2, 3]
    assert "OrderBatchSampler" in replacement.records[1].said()
    assert replacement.records[2].said().endswith("left alone, an IterableDataset gives samples in its own order")


def test_nothing_to_replace_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="it does not shuffle"), using("srs"):
        list(loader(shuffle=False))
    with pytest.raises(RuntimeError, match="no DataLoader was made"), using("srs"):
        pass


def test_an_error_inside_is_the_error() -> None:
    with pytest.raises(KeyError), using("srs"):
        raise KeyError
    assert next(iter(loader(shuffle=False))) == DATA[:8]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": "sorted"}, "order should be one of"),
        ({"order": "srs", "window": 3}, "window should not be given for the order 'srs'"),
        ({"order": "reshuffling", "drop_last": True}, "drop_last should not be given"),
        ({"order": "srs", "seed": -1}, "seed should be at least 0"),
        ({"order": "poisson"}, "those of 'poisson' have random ones"),
        ({"order": "stratified"}, "labels should be given for the order 'stratified'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message), using(**arguments):
        pass


def test_a_pool_that_is_too_small_is_an_error_when_the_loader_is_made() -> None:
    with pytest.raises(ValueError, match="batch_size should be at most pool_size"), using("srs", pool_size=4):
        loader()


def test_options_reach_the_order() -> None:
    with using("srs", seed=3, pool_size=20, sequence="identity"):
        drawn = list(loader(drop_last=True))
    order = SequencedReplacement(50, 8, seed=derived_seed(3, "loader", 0), pool_size=20, sequence="identity")
    assert drawn == as_lists(order.batches(0, 6))


def test_an_evaluation_sees_every_sample_once() -> None:
    with using("srs", seed=3) as replacement:
        made = loader(drop_last=True)
        with torch.no_grad():
            evaluated = [index for batch in loader() for index in batch]
            assert len({index for batch in made for index in batch}) == 48
        trained = list(made)
    assert sorted(evaluated) == DATA
    assert trained == stream(0, 0, 6)  # the evaluation has taken nothing from the stream
    first, second = replacement.records
    assert first.said().endswith("replaced by srs, seed 3; shuffled as before where gradients were off")
    assert "iterated with gradients off alone" in second.said()


def test_loaders_have_streams_of_their_own() -> None:
    with using("srs", seed=3):
        one, two = loader(drop_last=True), loader(drop_last=True)
        pairs = [loader(drop_last=True) for _ in range(2)]  # at one line, side by side
        drawn = [list(each) for each in (one, two, *pairs)]
    assert drawn == [stream(number, 0, 6) for number in range(4)]


def test_a_loader_made_in_every_epoch_goes_on() -> None:
    seen = []
    with using("srs", seed=3) as replacement:
        for _ in range(3):
            made = loader(drop_last=True)
            seen += list(made)
    assert seen == stream(0, 0, 18)
    assert len(replacement.records) == 1


def test_batch_samplers_and_loaders_without_batches() -> None:
    with using("srs", seed=3):
        batches = BatchSampler(RandomSampler(DATA), 8, drop_last=True)
        explicit = DataLoader(DATA, batch_sampler=batches, collate_fn=list)
        as_sampler = DataLoader(DATA, batch_size=None, sampler=batches, collate_fn=None)
        by_index = DataLoader(DATA, batch_size=None, shuffle=True)
        assert list(explicit) == stream(0, 0, 6)
        assert len(as_sampler) == 6
        assert list(as_sampler._index_sampler) == stream(1, 0, 6)
        indices = list(by_index)
    order = SequencedReplacement(50, 1, seed=derived_seed(3, "loader", 2))
    assert [[index] for index in indices] == as_lists(order.batches(0, 50))


def test_a_part_of_the_samples_an_epoch() -> None:
    with using("reshuffling", seed=3):
        made = loader(shuffle=None, sampler=RandomSampler(DATA, num_samples=20))
        epochs = [list(made), list(made)]
    permutations = as_lists(RandomReshuffling(50, 50, seed=derived_seed(3, "loader", 0)).batches(0, 2))
    assert [[index for batch in epoch for index in batch] for epoch in epochs] == [each[:20] for each in permutations]
    assert [len(batch) for batch in epochs[0]] == [8, 8, 4]


@pytest.mark.parametrize("name", ["srs", "reshuffling"])
@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("size", [50, 49, 6])
def test_processes_share_the_batches_of_one_stream(name: str, drop_last: bool, size: int) -> None:
    data, world = list(range(size)), 3
    with using(name, seed=3) as replacement:
        ranks = []
        for rank in range(world):
            sampler = DistributedSampler(data, world, rank, drop_last=drop_last)
            made = DataLoader(data, batch_size=4, sampler=sampler, collate_fn=list)
            plain = DistributedSampler(data, world, rank, drop_last=drop_last)
            sizes = [len(batch) for batch in BatchSampler(plain, 4, False)]
            epochs = []
            for epoch in (0, 1, 5):
                sampler.set_epoch(epoch)
                epochs.append(list(made))
                assert [len(batch) for batch in epochs[-1]] == sizes
            ranks.append(epochs)
    if replacement.records[0].num_replicas == 1:
        pytest.fail("the processes were not seen")
    seed = replacement._streams[0].sampler.order.seed
    assert seed == derived_seed(3, "shared loader", 0)
    for place, epoch in enumerate((0, 1, 5)):
        got = [list(chain.from_iterable(parts)) for parts in zip(*(rank[place] for rank in ranks), strict=True)]
        flat = [index for batch in got for index in batch]
        if name == "reshuffling":  # every sample once, and those that fill up
            total = len(DistributedSampler(data, world, 0, drop_last=drop_last)) * world
            assert len(flat) == total
            assert len(set(flat)) == min(total, size)
        else:
            order = SequencedReplacement(size, min(12, len(flat)), seed=seed)
            steps = len(got)
            drawn = as_lists(order.batches(epoch * steps, (epoch + 1) * steps))
            assert got == [*drawn[:-1], drawn[-1][: len(got[-1])]]


def test_passes_go_on_where_no_epoch_is_set() -> None:
    """Torch would give the same epoch again and again, of which SRS leaves a quarter of the samples out."""
    sampler = DistributedSampler(DATA, 1, 0)
    with using("srs", seed=3):
        made = loader(shuffle=None, sampler=sampler, drop_last=True)
        assert [*made, *made] == stream(0, 0, 12)
        sampler.set_epoch(7)
        assert [*made, *made] == stream(0, 42, 54)


def test_processes_that_draw_for_themselves_differ_where_their_torch_seeds_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    drawn = []
    for torch_seed in (1, 2, 2):
        torch.manual_seed(torch_seed)
        with using("srs", seed=3):
            drawn.append(list(loader()))
    assert drawn[0] != drawn[1]
    assert drawn[1] == drawn[2]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking pytest-xdist's threads is torch's choice
@pytest.mark.parametrize(("method", "persistent"), [("fork", False), ("fork", True), ("spawn", True)])
def test_workers(method: str, persistent: bool) -> None:
    with using("srs", seed=3):
        made = loader(drop_last=True, num_workers=2, multiprocessing_context=method, persistent_workers=persistent)
        assert [*made, *made] == stream(0, 0, 12)


def test_a_stateful_loader_resumes_within_an_epoch() -> None:
    with using("srs", seed=3) as replacement:
        made = StatefulDataLoader(DATA, batch_size=8, shuffle=True, drop_last=True, collate_fn=list)
        passing = iter(made)
        begun = [next(passing) for _ in range(4)]
        state = made.state_dict()
    assert replacement.records[0].replaced
    with using("srs", seed=3):
        again = StatefulDataLoader(DATA, batch_size=8, shuffle=True, drop_last=True, collate_fn=list)
        again.load_state_dict(state)
        rest = list(again)
    assert begun + rest == stream(0, 0, 6)


def test_an_inner_context_has_its_own_order() -> None:
    with using("srs", seed=3):
        with using("reshuffling"):
            inner = loader()
        outer = loader(drop_last=True)
    assert sorted(index for batch in inner for index in batch) == DATA
    assert list(outer) == stream(0, 0, 6)


def test_a_dataset_that_changes_its_length_is_refused() -> None:
    data = list(DATA)
    with using("srs"):
        made = DataLoader(data, batch_size=8, shuffle=True)
        list(made)
        data.extend(range(50))
        with pytest.raises(RuntimeError, match="a dataset should keep its length"):
            list(made)


@given(
    name=st.sampled_from(sorted(set(ORDERS) & {"srs", "reshuffling", "flip-flop", "independent"})),
    num_samples=st.integers(1, 40),
    batch_size=st.integers(1, 40),
    data=st.data(),
)
def test_a_fitted_order_has_the_sizes_it_is_told(name: str, num_samples: int, batch_size: int, data: Any) -> None:
    batch_size = min(batch_size, num_samples)
    order = ORDERS[name].order_class(num_samples, batch_size, seed=5)
    steps = data.draw(st.integers(1, order.steps_per_epoch))
    last = data.draw(st.integers(1, batch_size))
    fitted = FittedOrder(order, steps, last)
    batches = as_lists(fitted.batches(0, 3 * steps))
    assert [len(batch) for batch in batches] == ([batch_size] * (steps - 1) + [last]) * 3
    backwards = [fitted.batch(step).tolist() for step in reversed(range(3 * steps))]
    assert backwards[::-1] == batches
    assert pickle.loads(pickle.dumps(fitted)) == fitted
    assert as_lists(fitted.batches(steps, 2 * steps)) == batches[steps : 2 * steps]
