"""`using`: loaders that shuffle draw epochs of the order, one per `iter()`, and do not change otherwise."""

from __future__ import annotations

import copy
import pickle
import threading
from itertools import chain, islice
from typing import Any

import numpy as np
import pytest
import torch
from contracts import as_lists
from hypothesis import given, settings
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
from replenish.orders.building import check_fittable
from replenish.orders.rebatched import FittedOrder
from replenish.orders.registry import ORDERS
from replenish.torch import OrderBatchSampler, SRSBatchSampler, reorder, using
from replenish.torch.loader_hook import LoaderHook
from replenish.torch.shuffle_patch import ShufflePatch

DATA = list(range(50))
STEPS = 7  # 50 = 6 * 8 + 2


def loader(data: Any = DATA, **options: Any) -> DataLoader[Any]:
    return DataLoader(data, collate_fn=list, **{"batch_size": 8, "shuffle": True, **options})


def seed_of(number: int, kind: str = "loader", seed: int = 3) -> int:
    return seed if number == 0 else derived_seed(seed, kind, number)


def stream(number: int, start: int, stop: int) -> list[list[int]]:
    """Return full batches of loader `number`."""
    return as_lists(SequencedReplacement(50, 8, seed=seed_of(number)).batches(start, stop))


def epoch(number: int, stream_number: int = 0, size: int = 50) -> list[list[int]]:
    """Return one epoch in the batch sizes of the loader; the last batch is as short as torch's."""
    order = SequencedReplacement(size, 8, seed=seed_of(stream_number))
    steps = -(-size // 8)
    batches = as_lists(order.batches(number * steps, (number + 1) * steps))
    return [*batches[:-1], batches[-1][: size - 8 * (steps - 1)]]


class TestAPass:
    def test_is_an_epoch_of_the_order_in_the_batch_sizes_of_the_loader(self) -> None:
        with using("srs", seed=3) as patch:
            made = loader()
            assert len(made) == STEPS
            assert [list(made), list(made)] == [epoch(0), epoch(1)]
            sampler = SRSBatchSampler(DATA, 8, seed=3)
            assert [batch[: len(ours)] for batch, ours in zip(sampler, epoch(0), strict=True)] == epoch(0)
        assert patch.summaries() == [
            "loader over list, N = 50, B = 8: replaced by srs, seed 3: 2 passes begun (epochs 0 to 1), 0 left early, "
            f"{len(set(chain(*epoch(0), *epoch(1))))} of 50 samples drawn"
        ]

    def test_with_reshuffling_has_every_sample_once(self) -> None:
        with using("reshuffling", seed=3):
            made = loader()
            epochs = [[index for batch in made for index in batch] for _ in range(3)]
        assert epochs == as_lists(RandomReshuffling(50, 50, seed=3).batches(0, 3))
        assert all(sorted(each) == DATA for each in epochs)

    def test_with_gradients_off_is_an_evaluation_of_every_sample_once(self) -> None:
        with using("srs", seed=3) as patch:
            made, other = loader(drop_last=True), loader(batch_size=9)
            with torch.no_grad():
                assert sorted(chain(*other)) == DATA
                assert len({index for batch in made for index in batch}) == 48
            assert list(made) == stream(0, 0, 6)
        assert patch.summaries()[0].endswith("; 1 more with gradients off, shuffled as before")
        assert patch.summaries()[1].endswith("left alone, it was iterated only with gradients off, as in an evaluation")

    @pytest.mark.parametrize("drop_last", [True, False])
    @pytest.mark.parametrize("name", [name for name in ORDERS if not ORDERS[name].needs])
    def test_has_torchs_sizes_in_all_orders(self, name: str, drop_last: bool) -> None:
        if ORDERS[name].batch_sizes_vary:
            with pytest.raises(ValueError, match="have random ones"):
                check_fittable(name, {})
            return
        with using(name):
            ours = [len(batch) for batch in loader(drop_last=drop_last)]
        assert ours == [len(batch) for batch in loader(drop_last=drop_last)]

    def test_may_be_without_batches_or_a_part_of_the_samples(self) -> None:
        with using("srs", seed=3):
            batches = BatchSampler(RandomSampler(DATA), 8, drop_last=True)
            as_sampler = DataLoader(DATA, batch_size=None, sampler=batches, collate_fn=None)
            assert list(DataLoader(DATA, batch_sampler=batches, collate_fn=list)) == stream(0, 0, 6)
            assert list(iter(batches)) == stream(0, 6, 12), "both loaders draw from this one batch sampler"
            assert len(as_sampler) == 6
            indices = list(DataLoader(DATA, batch_size=None, shuffle=True))
            part = list(loader(shuffle=None, sampler=RandomSampler(DATA, num_samples=20)))
        assert [[each] for each in indices] == as_lists(SequencedReplacement(50, 1, seed=seed_of(1)).batches(0, 50))
        assert [len(batch) for batch in part] == [8, 8, 4]

    @pytest.mark.parametrize("indices", [range(20, 50), list(range(49, 19, -1)), [*range(20, 35), *range(35, 50)]])
    def test_over_a_subset_draws_from_its_indices(self, indices: Any) -> None:
        """The usual split into training and validation."""
        with using("srs", seed=3):
            drawn = list(loader(shuffle=None, sampler=SubsetRandomSampler(indices)))
        order = as_lists(SequencedReplacement(30, 8, seed=3).batches(0, 4))
        assert drawn == [[indices[place] for place in batch] for batch in [*order[:3], order[3][:6]]]


class TestEveryIterIsAFreshEpoch:
    """Rule 6 of the contract of positions."""

    @pytest.mark.parametrize("workers", [0, 2])
    def test_after_passes_that_were_left(self, workers: int) -> None:
        with using("srs", seed=3) as patch:
            made = loader(num_workers=workers)
            firsts = [next(iter(made)) for _ in range(4)]
            for _ in made:
                break
            cut = [list(islice(made, 3)) for _ in range(2)]
        assert firsts == [epoch(number)[0] for number in range(4)]
        assert cut == [epoch(5)[:3], epoch(6)[:3]]
        left = 5 if workers else 7  # two workers have been given all 7 batches when 3 are used
        assert f"7 passes begun (epochs 0 to 6), {left} left early" in patch.summaries()[0]

    def test_with_several_at_once(self) -> None:
        with using("srs", seed=3):
            made = loader()
            assert list(zip(made, made, strict=True)) == list(zip(epoch(0), epoch(1), strict=True))
            passes: list[Any] = [None] * 4
            threads = [
                threading.Thread(target=lambda place=place: passes.__setitem__(place, list(made))) for place in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert sorted(passes) == sorted(epoch(number) for number in range(2, 6))

    @settings(max_examples=40, deadline=None)
    @given(
        actions=st.lists(
            st.tuples(
                st.sampled_from(["begin", "draw", "whole", "cut", "evaluate", "remake", "copy"]), st.integers(0, 9)
            ),
            max_size=25,
        ),
        name=st.sampled_from(["srs", "reshuffling", "flip-flop"]),
        drop_last=st.booleans(),
    )
    def test_in_any_history(self, actions: list[tuple[str, int]], name: str, drop_last: bool) -> None:
        """However passes begin, end and alternate, and loaders are copied or made again, pass k draws epoch k."""
        order = ORDERS[name].order_class(50, 8, seed=3)
        fitted = FittedOrder(order, 6 if drop_last else 7, 8 if drop_last else 2)  # type: ignore[arg-type]
        under_way: list[tuple[Any, Any]] = []
        begun = 0

        def begin() -> tuple[Any, Any]:
            nonlocal begun
            begun += 1
            return iter(made), iter(as_lists(fitted.batches((begun - 1) * len(made), begun * len(made))))

        with using(name, seed=3) as patch:
            made = loader(drop_last=drop_last)
            for action, value in actions:
                if action == "begin":
                    under_way.append(begin())
                    assert next(under_way[-1][0]) == next(under_way[-1][1])
                elif action == "draw" and under_way:
                    ours, expected = under_way[value % len(under_way)]
                    assert next(ours, None) == next(expected, None)
                elif action in ("whole", "cut"):
                    stop = None if action == "whole" else 1 + value % 5
                    ours, expected = begin()
                    assert list(islice(ours, stop)) == list(islice(expected, stop))
                elif action == "evaluate":
                    with torch.no_grad():
                        assert len(set(chain(*made))) == (48 if drop_last else 50)
                elif action == "copy":
                    made = copy.deepcopy(made)
                elif action == "remake" and begun:
                    under_way.clear()
                    made = loader(drop_last=drop_last)
        assert sum(record.passes for record in patch.records) == begun


class TestWhichLoaders:
    def test_those_made_inside_and_until_the_end(self) -> None:
        before = loader()
        untouched = DataLoader.__init__, BatchSampler.__iter__, RandomSampler.__iter__
        with using("srs", seed=3) as patch:
            assert sorted(chain(*before)) == DATA
            made = loader(drop_last=True)
            assert list(made) == stream(0, 0, 6)
            assert isinstance(made.sampler, RandomSampler), "frameworks see torch's own sampler"
            assert type(made.batch_sampler) is BatchSampler
        assert (DataLoader.__init__, BatchSampler.__iter__, RandomSampler.__iter__) == untouched
        assert sorted(chain(*loader())) == DATA
        assert len({index for batch in made for index in batch}) == 48, "torch's own shuffling again"
        with using("reshuffling", seed=3):
            assert len({index for batch in made for index in batch}) == 48
            again = loader()
            assert sorted(chain(*again)) == DATA
        assert len(patch.records) == 1

    def test_of_an_inner_context_have_the_inner_order(self) -> None:
        with using("srs", seed=3) as around:
            outer = loader(drop_last=True)
            first = list(outer)
            with using("reshuffling", seed=5) as inside:
                inner = loader()
                assert [index for batch in inner for index in batch] == RandomReshuffling(50, 50, seed=5).batch(
                    0
                ).tolist()
                second = list(outer)
            third = list(outer)
        assert [*first, *second, *third] == stream(0, 0, 18)
        assert (len(around.records), len(inside.records)) == (1, 1)

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"shuffle": False}, "it does not shuffle"),
            ({"shuffle": None, "sampler": SequentialSampler(DATA)}, "it does not shuffle"),
            ({"shuffle": None, "sampler": DistributedSampler(DATA, 2, 0, shuffle=False)}, "it does not shuffle"),
            ({"shuffle": None, "sampler": RandomSampler(DATA, replacement=True)}, "draws with replacement"),
            ({"shuffle": None, "sampler": RandomSampler(DATA, num_samples=60)}, "more than once in an epoch"),
            ({"shuffle": None, "sampler": WeightedRandomSampler([1.0] * 50, 50)}, "of its own, WeightedRandomSampler"),
            ({"shuffle": None, "sampler": [3, 1, 2]}, "a sampler of its own, list"),
            ({"batch_size": 51, "drop_last": True}, "it drops its only batch"),
        ],
    )
    def test_left_alone_have_a_reason(self, options: dict[str, Any], reason: str) -> None:
        with using("srs") as patch:
            loader()
            list(loader(**options))
        assert [record.order is None for record in patch.records] == [False, True]
        assert reason in patch.records[1].summary

    def test_with_an_iter_of_their_own_are_left_alone(self) -> None:
        class ByClass(RandomSampler):
            def __iter__(self) -> Any:
                return iter([0, 1, 0, 1])

        class Counting(IterableDataset[int]):
            def __iter__(self) -> Any:
                return iter(range(4))

        order = SequencedReplacement(50, 8, seed=9)
        with using("srs") as patch:
            loader()
            assert list(loader(shuffle=None, sampler=ByClass(DATA), batch_size=2)) == [[0, 1], [0, 1]]
            ours = DataLoader(DATA, batch_sampler=OrderBatchSampler(order), collate_fn=list)
            assert list(ours) == as_lists(order.batches(0, 7))
            assert list(reorder(ours, order)) == as_lists(order.batches(0, 7))
            assert list(DataLoader(Counting(), batch_size=None)) == [0, 1, 2, 3]
            assert list(DataLoader(DATA, sampler=[3, 1, 2], batch_size=None)) == [3, 1, 2]
        reasons = [record.reason for record in patch.records[1:]]
        assert reasons == [
            "it has a sampler of its own, ByClass",
            "it has a sampler of its own, OrderBatchSampler",
            "an IterableDataset gives samples in its own order",
            "it has a sampler of its own, list",
        ]

    def test_that_do_not_shuffle_get_the_order_if_all_do(self) -> None:
        with using("srs", seed=3, everything=True) as patch:
            made = loader(shuffle=False)
            assert list(made) == epoch(0)
            with torch.no_grad():
                assert list(chain(*made)) == DATA
            weighted = loader(shuffle=None, sampler=WeightedRandomSampler([1.0] * 50, 50))
            list(weighted)
        assert "of its own, WeightedRandomSampler" in patch.summaries()[1]

    def test_without_a_loader_it_is_an_error(self) -> None:
        with pytest.raises(RuntimeError, match="it does not shuffle"), using("srs"):
            list(loader(shuffle=False))
        with pytest.raises(RuntimeError, match="no torch DataLoader was made"), using("srs"):
            pass


class TestStreams:
    """Loaders that share a stream of epochs, and their seeds."""

    def test_the_first_loader_trained_on_has_the_seed_and_others_seeds_derived_from_it(self) -> None:
        with using("srs", seed=3) as patch:
            unused, two = loader(), loader()
            pairs = [loader() for _ in range(2)]  # made at the same line
            assert [list(each) for each in (two, *pairs, unused)] == [epoch(0, number) for number in range(4)]
        assert [record.seed for record in patch.records] == [seed_of(number) for number in (3, 0, 1, 2)]
        assert all(f"seed {record.seed}:" in record.summary for record in patch.records)

    @pytest.mark.parametrize("workers", [0, 2])
    @pytest.mark.parametrize("leave_early", [True, False])
    def test_a_loader_and_a_dataset_made_in_every_epoch_continue(self, workers: int, leave_early: bool) -> None:
        stop = 3 if leave_early else STEPS
        with using("srs", seed=3) as patch:
            seen = []
            for _ in range(3):
                made = loader(list(DATA), num_workers=workers)
                batches = iter(made)
                seen.append([next(batches) for _ in range(stop)])
        assert seen == [epoch(number)[:stop] for number in range(3)]
        assert len(patch.records) == 1

    def test_a_dataset_that_grows_is_drawn_from_at_its_new_size(self) -> None:
        data = list(DATA)
        with using("srs", seed=3) as patch:
            made = loader(data)
            assert list(made) == epoch(0)
            data.extend(range(50, 90))
            assert len(made) == 12
            assert list(made) == epoch(1, size=90)
            assert list(loader(list(range(95)))) == epoch(2, size=95), "also if it is a new list"
        assert len(patch.records) == 1
        assert "N = 95, B = 8: replaced by srs, seed 3: 3 passes begun (epochs 0 to 2)" in patch.summaries()[0]

    def test_a_loader_whose_stream_another_has_continued_gets_a_new_one(self) -> None:
        with using("srs", seed=3) as patch:
            first = loader()
            assert list(first) == epoch(0)
            second = loader()
            assert list(second) == epoch(1)
            assert list(first) == epoch(0, 1)
            assert [list(second), list(first)] == [epoch(2), epoch(1, 1)]
        assert [record.passes for record in patch.records] == [3, 2]

    def test_a_loader_made_during_a_pass_of_another_has_its_own(self) -> None:
        seen = []
        with using("srs", seed=3):
            outer = loader()
            for batch, _ in zip(outer, range(3), strict=False):
                inner = loader()
                seen.append((batch, next(iter(inner))))
        assert [batch for batch, _ in seen] == epoch(0)[:3]
        assert [batch for _, batch in seen] == [epoch(number, 1)[0] for number in range(3)]

    def test_the_first_epoch_can_be_set(self) -> None:
        patch = ShufflePatch("srs", 3, first_epoch=4)
        with patch.hook:
            made = loader()
            assert [list(made), list(made)] == [epoch(4), epoch(5)]
        assert "(epochs 4 to 5)" in patch.summaries()[0]

    def test_independent_processes_differ_if_their_torch_seeds_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WORLD_SIZE", "2")
        drawn = []
        for torch_seed in (1, 2, 2):
            torch.manual_seed(torch_seed)
            with using("srs", seed=3):
                drawn.append(list(loader()))
        assert drawn[0] != drawn[1]
        assert drawn[1] == drawn[2]


class TestProcesses:
    @pytest.mark.parametrize("name", ["srs", "reshuffling"])
    @pytest.mark.parametrize("drop_last", [True, False])
    @pytest.mark.parametrize("size", [49, 6])
    def test_share_the_batches_of_one_stream(self, name: str, drop_last: bool, size: int) -> None:
        data, world, epochs = list(range(size)), 3, (0, 1, 5)
        ranks = []
        for rank in range(world):
            with using(name, seed=3) as patch:  # stands for a process
                sampler = DistributedSampler(data, world, rank, drop_last=drop_last)
                made = DataLoader(data, batch_size=4, sampler=sampler, collate_fn=list)
                sizes = [len(batch) for batch in BatchSampler(sampler, 4, False)]
                seen = []
                for number in epochs:
                    sampler.set_epoch(number)
                    seen.append(list(made))
                    assert [len(batch) for batch in seen[-1]] == sizes
            ranks.append(seen)
            assert patch.records[0].num_replicas == world
        for place, number in enumerate(epochs):
            got = [list(chain.from_iterable(parts)) for parts in zip(*(rank[place] for rank in ranks), strict=True)]
            flat = [index for batch in got for index in batch]
            if name == "reshuffling":  # every sample once, and the padding
                assert len(flat) == len(DistributedSampler(data, world, 0, drop_last=drop_last)) * world
                assert len(set(flat)) == min(len(flat), size)
            else:
                order = SequencedReplacement(size, min(12, len(flat)), seed=3)
                drawn = as_lists(order.batches(number * len(got), (number + 1) * len(got)))
                assert got == [*drawn[:-1], drawn[-1][: len(got[-1])]]

    def test_passes_continue_without_set_epoch(self) -> None:
        """torch would repeat the same epoch, in which SRS does not draw a quarter of the samples."""
        sampler = DistributedSampler(DATA, 1, 0)
        with using("srs", seed=3):
            made = loader(shuffle=None, sampler=sampler)
            assert [list(made), list(made)] == [epoch(0), epoch(1)]
            sampler.set_epoch(7)
            assert [list(made), list(made)] == [epoch(7), epoch(8)]
            sampler.set_epoch(8)
            assert list(made) == epoch(9), "no epoch is repeated"

    @pytest.mark.parametrize("splits", [True, False])
    def test_may_divide_the_batches_by_a_wrapper(self, splits: bool) -> None:
        """Like Accelerate's shards, which are recognised by public attributes."""

        class Shard:
            def __init__(self, batch_sampler: Any, rank: int) -> None:
                self.batch_sampler, self.num_processes, self.process_index = batch_sampler, 2, rank
                self.split_batches = splits

            def __iter__(self) -> Any:
                for number, batch in enumerate(self.batch_sampler):
                    if splits:
                        yield batch[4 * self.process_index : 4 * self.process_index + 4]
                    elif number % 2 == self.process_index:
                        yield batch

        ranks = []
        for rank in range(2):
            with using("srs", seed=3) as patch:
                inner = BatchSampler(RandomSampler(DATA), 8 if splits else 4, drop_last=True)
                made = DataLoader(DATA, batch_sampler=Shard(inner, rank), collate_fn=list)
                ranks.append([*made, *made])
            assert patch.records[0].num_replicas == 2
        assert [[*one, *two] for one, two in zip(*ranks, strict=True)] == stream(0, 0, 12)

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking pytest-xdist's threads is torch's choice
    @pytest.mark.parametrize(("method", "persistent"), [("fork", False), ("spawn", True)])
    def test_of_workers(self, method: str, persistent: bool) -> None:
        with using("srs", seed=3):
            made = loader(drop_last=True, num_workers=2, multiprocessing_context=method, persistent_workers=persistent)
            assert [*made, *made] == stream(0, 0, 12)


class TestFrameworksSamplers:
    @pytest.mark.parametrize("workers", [0, 2])
    def test_a_stateful_loader_of_torchdata(self, workers: int) -> None:
        with using("srs", seed=3) as patch:
            made = StatefulDataLoader(DATA, batch_size=8, shuffle=True, collate_fn=list, num_workers=workers)
            assert [list(made), list(made)] == [epoch(0), epoch(1)]
        assert len(patch.records) == 1

    def test_a_sampler_exchanged_after_the_loader_was_made(self) -> None:
        """Accelerate does this."""
        with using("srs", seed=3):
            made: Any = loader(list(range(90)), shuffle=None, sampler=RandomSampler(DATA))
            made.batch_sampler.sampler = RandomSampler(range(90))
            assert list(made) == epoch(0, size=90)
            made.batch_sampler.sampler = SequentialSampler(DATA)
            assert list(chain(*made)) == DATA


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


def test_options_reach_the_order_and_fail_before_the_training() -> None:
    with using("srs", seed=3, pool_size=20, sequence=np.arange(50)) as patch:
        drawn = list(loader(drop_last=True))
    order = SequencedReplacement(50, 8, seed=3, pool_size=20, sequence="identity")
    assert drawn == as_lists(order.batches(0, 6))
    assert "replaced by srs, pool_size 20, sequence of 50, seed 3: " in patch.summaries()[0]
    with pytest.raises(ValueError, match="batch_size should be at most pool_size"), using("srs", pool_size=4):
        loader()


def noting(drawn: list[Any]) -> Any:
    """Return a replacement for an iteration that notes every drawn item."""

    def draw(sampler: Any, own: Any) -> Any:
        for item in own():
            drawn.append(item)
            yield item

    return draw


class TestLoaderHook:
    @pytest.mark.parametrize("workers", [0, 2])
    def test_sees_what_a_loader_draws(self, workers: int) -> None:
        drawn: list[Any] = []
        with LoaderHook(lambda made: hook.replace_iter(made.batch_sampler, noting(drawn))) as hook:
            made = loader(num_workers=workers)
            assert [*made, *made] == drawn
        list(made)
        assert len(drawn) == 14, "the hook ends with its context"

    def test_sees_a_pass_of_a_subclass_once(self) -> None:
        class Longer(BatchSampler):
            def __iter__(self) -> Any:
                yield from super().__iter__()
                yield [0]

        passes: list[Any] = []
        with LoaderHook() as hook:
            plain, longer = (kind(SequentialSampler(range(4)), 2, False) for kind in (BatchSampler, Longer))
            for sampler in (plain, longer):
                hook.replace_iter(sampler, noting(passes))
            list(longer)
        assert passes == [[0, 1], [2, 3], [0]]

    def test_copies_share_the_hook_and_pickles_do_not(self) -> None:
        with using("srs", seed=3) as patch:
            made = loader()
            list(made)
            assert list(copy.deepcopy(made)) == epoch(1)
            assert "pickled" not in patch.summaries()[0]
            assert sorted(chain(*pickle.loads(pickle.dumps(made)))) == DATA
        assert patch.summaries()[0].endswith("; warning: it was pickled, and has torch's order in another process")


@given(
    name=st.sampled_from(sorted(set(ORDERS) & {"srs", "reshuffling", "flip-flop", "independent"})),
    num_samples=st.integers(1, 40),
    batch_size=st.integers(1, 40),
    data=st.data(),
)
def test_a_fitted_order_has_the_given_sizes(name: str, num_samples: int, batch_size: int, data: Any) -> None:
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
