from __future__ import annotations

import numpy as np
import pytest
import torch

from replenish import RandomReshuffling, SequencedReplacement
from replenish.lab.data import Augmentation, Batches, load


@pytest.fixture(scope="module")
def digits():
    return load("digits", images_per_class=12)


def order(batch_size=24, seed=0):
    return SequencedReplacement(120, batch_size, seed=seed)


def equal(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_shapes_and_types(digits):
    images, labels = next(Batches(order(), digits).batches())
    assert images.shape == (24, 1, 8, 8)
    assert images.dtype == torch.float32
    assert labels.shape == (24,)
    assert labels.dtype == torch.int64


def test_without_augmentation_a_batch_is_the_images_of_the_order(digits):
    batches = Batches(order(), digits, augment=False)
    for indices, (images, labels) in zip(order().batches(0, 5), batches.batches(0, 5), strict=True):
        expected = (digits.train_images[indices] / 255 - digits.mean) / digits.std
        np.testing.assert_allclose(images.numpy(), expected.transpose(0, 3, 1, 2), rtol=0, atol=1e-6)
        assert labels.tolist() == digits.train_labels[indices].tolist()


def test_two_copies_of_a_sample_get_crops_of_their_own(digits):
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


def test_two_iterators_do_not_disturb_each_other(digits):
    batches = Batches(order(), digits)
    expected = list(batches.batches(0, 6))
    first, second = batches.batches(0, 6), batches.batches(3, 6)
    assert equal(next(second), expected[3])
    assert all(equal(got, wanted) for got, wanted in zip(first, expected, strict=True))
    assert equal(next(second), expected[4])


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
    # The draws belong to places: a share of a short batch is a part of it like any other.
    halves = [Batches(short, digits, num_replicas=2, rank=rank).batch(2) for rank in range(2)]
    assert equal([torch.cat(parts) for parts in zip(*halves, strict=True)], batches.batch(2))


def test_channels_last_changes_the_memory_alone(digits):
    images = np.random.default_rng(0).integers(0, 256, (120, 8, 8, 3), dtype=np.uint8)
    coloured = type(digits)(images, digits.train_labels, images[:10], np.arange(10), digits.class_names, "coloured")
    plain, last = (Batches(order(), coloured, channels_last=choice).batch(4) for choice in (False, True))
    assert equal(plain, last)
    assert last[0].is_contiguous(memory_format=torch.channels_last)


def test_config_names_what_decides_the_batches(digits):
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
def test_wrong_arguments(digits, arguments, error, sentence):
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
