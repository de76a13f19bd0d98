"""Batches of images: crops and flips, shares of processes, the alternating flip."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest
import torch
from contracts import facts
from scipy.stats import chi2

from replenish import RandomReshuffling, SequencedReplacement
from replenish.lab.config import RunConfig
from replenish.lab.data import Augmentation, Batches, Dataset, ImageStore, load
from replenish.lab.data.augment import AugmentationDraws
from replenish.orders import ORDERS, build_order

# ---- Batches ----


@pytest.fixture(scope="module")
def digits():
    return load("digits", images_per_class=12)


def order(batch_size=24, seed=0):
    return SequencedReplacement(120, batch_size, seed=seed)


def equal(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_without_augmentation_a_batch_is_the_images_of_the_order(digits):
    batches = Batches(order(), digits, augment=False)
    for indices, (images, labels) in zip(order().batches(0, 5), batches.batches(0, 5), strict=True):
        expected = (digits.train_images[indices] / 255 - digits.mean) / digits.std
        np.testing.assert_allclose(images.numpy(), expected.transpose(0, 3, 1, 2), rtol=0, atol=1e-6)
        assert labels.tolist() == digits.train_labels[indices].tolist()


def test_copies_of_a_sample_get_different_crops(digits):
    class OneSample:
        num_samples, batch_size, steps_per_epoch = 120, 24, 5

        def batch(self, step):
            return np.full(24, 7)

        def batches(self, start=0, stop=None):
            return iter([self.batch(start)] * 3)

        def effective_epoch(self, step):
            return step / 5

        def config(self):
            return {"order": "one"}

    images, _ = Batches(OneSample(), digits).batch(0)
    assert len({image.numpy().tobytes() for image in images}) > 15


def test_any_step_can_be_reached_and_repeats_exactly(digits):
    run = list(Batches(order(), digits, seed=5).batches(0, 30))
    again = Batches(order(), digits, seed=5)
    for start in (1, 17, 29):
        for offset, batch in enumerate(again.batches(start, 30)):
            assert equal(batch, run[start + offset])
    for step in (29, 0, 13):
        assert equal(again.batch(step), run[step])
    assert not equal(Batches(order(), digits, seed=6).batch(3), run[3])


@pytest.mark.parametrize("num_replicas", [2, 3, 8])
def test_the_shares_of_all_ranks_are_the_batch_of_one_process(digits, num_replicas):
    alone = Batches(order(), digits)
    ranks = [Batches(order(), digits, num_replicas=num_replicas, rank=rank) for rank in range(num_replicas)]
    for step in (0, 11):
        shares = [batches.batch(step) for batches in ranks]
        assert {len(labels) for _, labels in shares} == {24 // num_replicas}
        together = [torch.cat(parts) for parts in zip(*shares, strict=True)]
        assert equal(together, alone.batch(step))


def test_the_test_split_in_order(digits):
    for num_replicas in (1, 3):
        parts = []
        for rank in range(num_replicas):
            batches = Batches(order(), digits, num_replicas=num_replicas, rank=rank)
            parts += list(batches.ordered(batch_size=50))
        labels = torch.cat([labels for _, labels in parts])
        images = torch.cat([images for images, _ in parts])
        assert labels.tolist() == digits.test_labels.tolist()
        expected = (digits.test_images / 255 - digits.mean) / digits.std
        np.testing.assert_allclose(images.numpy(), expected.transpose(0, 3, 1, 2), rtol=0, atol=1e-6)
        assert max(len(images) for images, _ in parts) == 50


def test_a_short_last_batch(digits):
    short = RandomReshuffling(120, 50)
    batches = Batches(short, digits)
    assert [len(labels) for _, labels in batches.batches(0, 4)] == [50, 50, 20, 50]
    # Draws belong to places in the batch, so a share of a short batch works like any other share.
    halves = [Batches(short, digits, num_replicas=2, rank=rank).batch(2) for rank in range(2)]
    assert equal([torch.cat(parts) for parts in zip(*halves, strict=True)], batches.batch(2))


def test_channels_last_changes_only_the_memory_layout(digits):
    images = np.random.default_rng(0).integers(0, 256, (120, 8, 8, 3), dtype=np.uint8)
    coloured = type(digits)(images, digits.train_labels, images[:10], np.arange(10), digits.class_names, "coloured")
    plain, last = (Batches(order(), coloured, channels_last=choice).batch(4) for choice in (False, True))
    assert equal(plain, last)
    assert last[0].is_contiguous(memory_format=torch.channels_last)


def test_config_has_everything_that_decides_the_batches(digits):
    config = Batches(order(), digits, augment=Augmentation(pad=2, flip=False), seed=9, num_replicas=2).config()
    assert config == {
        "order": order().config(),
        "data": digits.fingerprint,
        "pad": 2,
        "flip": 0,
        "augmentation_seed": 9,
    }


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"rank": 1}, ValueError, "rank should be less than num_replicas"),
        ({"num_replicas": 5}, ValueError, "batch_size should be divisible by num_replicas"),
        ({"augment": 4}, TypeError, "augment should be True, False or an Augmentation, but got 4"),
        ({"seed": -1}, ValueError, "seed should be at least 0"),
        ({"channels_last": 1}, TypeError, "channels_last should be True or False"),
    ],
)
def test_wrong_arguments_of_batches(digits, arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        Batches(order(), digits, **arguments)


def test_other_wrong_arguments(digits):
    with pytest.raises(ValueError, match="over the 120 training images of digits, but got num_samples=100"):
        Batches(SequencedReplacement(100, 10), digits)
    with pytest.raises(ValueError, match="the size of the last batch of an epoch should be divisible"):
        Batches(RandomReshuffling(120, 50), digits, num_replicas=25)
    batches = Batches(order(), digits)
    with pytest.raises(ValueError, match="start_step should be at least 0"):
        batches.batches(-1)
    with pytest.raises(ValueError, match="split should be one of train, test, held_out, but got 'validation'"):
        batches.ordered("validation")
    with pytest.raises(ValueError, match="batch_size should be at least 1"):
        batches.ordered(batch_size=0)


# ---- Augmentation ----


MEAN, STD = np.array([0.51, 0.49, 0.44]), np.array([0.27, 0.26, 0.28])


def pixels_of(count=20, height=7, width=6, channels=3):
    return np.random.default_rng(0).integers(0, 256, (count, height, width, channels), dtype=np.uint8)


def outcomes(augmentation, seed, steps, batch_size=64):
    draws = AugmentationDraws(augmentation, seed, batch_size)
    side = 2 * augmentation.pad + 1
    return np.stack([(rows * side + columns) * 2 + flips for rows, columns, flips in map(draws.at, steps)])


def slow_crops(pixels, mean, std, pad, rows, columns, flips):
    """Process one image at a time: standardise, pad with the mean colour, crop, mirror."""
    colour = (np.rint(255 * mean) / 255 - mean) / std
    result = []
    for image, row, column, flip in zip(pixels, rows, columns, flips, strict=True):
        standard = (image / 255 - mean) / std
        height, width, channels = image.shape
        padded = np.full((height + 2 * pad, width + 2 * pad, channels), colour)
        padded[pad : pad + height, pad : pad + width] = standard
        crop = padded[row : row + height, column : column + width]
        result.append((crop[:, ::-1] if flip else crop).transpose(2, 0, 1))
    return np.stack(result)


def test_each_of_the_81_offsets_and_both_flips_are_equally_likely():
    assert Augmentation().outcomes == 162
    counts = np.bincount(outcomes(Augmentation(), 0, range(2000)).ravel(), minlength=162)
    expected = counts.sum() / 162
    assert len(counts) == 162
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, 161)


def test_places_and_steps_are_independent():
    drawn = outcomes(Augmentation(pad=1), 0, range(4000))
    # There are 18 outcomes. Pairs of neighbouring places, and of neighbouring steps, fill an 18 x 18 table evenly.
    for first, second in ((drawn[:, ::2], drawn[:, 1::2]), (drawn[::2], drawn[1::2])):
        pairs = np.bincount((first * 18 + second).ravel(), minlength=324)
        expected = pairs.sum() / 324
        assert ((pairs - expected) ** 2 / expected).sum() < chi2.isf(1e-6, 323)


def test_draws_are_frozen():
    rows, columns, flips = AugmentationDraws(Augmentation(), seed=0, batch_size=8).at(5)
    assert rows.tolist() == [4, 7, 1, 4, 8, 0, 8, 6]
    assert columns.tolist() == [0, 8, 4, 1, 8, 4, 1, 1]
    assert flips.tolist() == [0, 0, 1, 1, 0, 1, 0, 0]


@pytest.mark.parametrize("augmentation", [Augmentation(pad=0), Augmentation(pad=2, flip=False)])
def test_crops_and_flips_can_be_switched_off(augmentation):
    rows, columns, flips = AugmentationDraws(augmentation, 0, 500).at(0)
    assert set(rows) == set(columns) == set(range(2 * augmentation.pad + 1))
    assert set(flips) == ({0, 1} if augmentation.flip else {0})


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("pad", [0, 1, 4])
def test_crops_equal_the_papers_definition(channels_last, channels, pad):
    pixels = pixels_of(channels=channels)
    mean, std = MEAN[:channels], STD[:channels]
    store = ImageStore(pixels, mean, std, pad=pad, channels_last=channels_last)
    # Every offset and flip, on random images.
    side = 2 * pad + 1
    rows, columns, flips = (part.ravel() for part in np.meshgrid(range(side), range(side), range(2)))
    indices = np.random.default_rng(1).integers(0, len(pixels), len(rows))
    indices[-1] = len(pixels) - 1  # with the last offset: the end of the memory
    got = store.crops(indices, rows, columns, flips)
    assert got.dtype == torch.float32
    expected = slow_crops(pixels[indices], mean, std, pad, rows, columns, flips)
    np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=1e-6)
    memory = torch.channels_last if channels_last else torch.contiguous_format
    assert got.is_contiguous(memory_format=memory)
    assert (got.stride(1) == 1) == channels_last  # also with one channel, where both layouts are contiguous


@pytest.mark.parametrize("channels_last", [False, True])
def test_plain_images(channels_last):
    pixels = pixels_of()
    store = ImageStore(pixels, MEAN, STD, pad=3, channels_last=channels_last)
    expected = ((pixels / 255 - MEAN) / STD).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(store.plain(np.arange(20)).numpy(), expected, rtol=0, atol=1e-6)
    centre = np.full(20, 3)
    assert (store.crops(np.arange(20), centre, centre, 0 * centre) == store.plain(np.arange(20))).all()


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"pad": -1}, ValueError, "pad should be at least 0, but got -1"),
        ({"pad": 65}, ValueError, "pad should be at most 64"),
        ({"pad": 1.0}, TypeError, "pad should be an int"),
        ({"flip": 1}, TypeError, "flip should be True or False"),
    ],
)
def test_wrong_arguments_of_augmentation(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        Augmentation(**arguments)


# ---- The alternating flip mirrors an image at every second visit, under any order ----


def half_dark(count: int) -> Dataset:
    """Return images whose left half is dark, which shows whether they are mirrored."""
    images = np.zeros((count, 2, 2, 1), dtype=np.uint8)
    images[:, :, 1] = 255
    labels = np.arange(count) % 2
    return Dataset(images, labels, images[:2], labels[:2], ("even", "odd"))


def sides(batches: Batches, start: int, stop: int) -> dict[int, list[bool]]:
    """Return for each image whether it was mirrored at each visit."""
    seen = defaultdict(list)
    for indices, (images, _) in batches.steps(start, stop):
        for sample, mirrored in zip(indices.tolist(), (images[:, 0, 0, 0] > 0).tolist(), strict=True):
            seen[sample].append(mirrored)
    return seen


def alternating(name: str, **options: object) -> Batches:
    order = build_order(name, 97, 8, **facts(name), **options)
    return Batches(order, half_dark(97), augment=Augmentation(pad=0, alternating=True), seed=3)


@pytest.mark.parametrize("name", [name for name, entry in ORDERS.items() if not entry.batch_sizes_vary])
def test_every_second_visit_is_mirrored_under_any_order(name: str) -> None:
    seen = sides(alternating(name), 0, 60)
    assert all(one != next_one for visits in seen.values() for one, next_one in itertools.pairwise(visits))
    first = [visits[0] for visits in seen.values()]
    assert 0.25 < np.mean(first) < 0.75  # the first flip is drawn for each image


@pytest.mark.parametrize("name", ["srs", "reshuffling", "independent"])
def test_a_resumed_run_continues_alternating(name: str) -> None:
    whole, before, after = (sides(alternating(name), *steps) for steps in ((0, 60), (0, 33), (33, 60)))
    assert all(before.get(sample, []) + after.get(sample, []) == visits for sample, visits in whole.items())


def test_processes_share_the_batch_of_one() -> None:
    alone = alternating("srs")
    halves = [
        Batches(alone.order, alone.dataset, augment=alone.augmentation, seed=3, num_replicas=2, rank=rank)
        for rank in range(2)
    ]
    for step in (0, 1, 50):
        images = alone.batch(step)[0]
        assert np.concatenate([half.batch(step)[0].numpy() for half in halves]).tolist() == images.tolist()


def test_it_is_refused_without_flips() -> None:
    with pytest.raises(ValueError, match="alternating should be with flip=True"):
        Augmentation(flip=False, alternating=True)
    with pytest.raises(ValueError, match="alternating_flip should be with flip=True"):
        RunConfig(flip=False, alternating_flip=True)
