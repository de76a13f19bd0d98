from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from replenish.lab.data import Augmentation, ImageStore
from replenish.lab.data.augment import AugmentationDraws

MEAN, STD = np.array([0.51, 0.49, 0.44]), np.array([0.27, 0.26, 0.28])


def images(count=20, height=7, width=6, channels=3):
    return np.random.default_rng(0).integers(0, 256, (count, height, width, channels), dtype=np.uint8)


def outcomes(augmentation, seed, steps, batch_size=64):
    draws = AugmentationDraws(augmentation, seed, batch_size)
    side = 2 * augmentation.pad + 1
    return np.stack([(rows * side + columns) * 2 + flips for rows, columns, flips in map(draws.at, steps)])


def slow_crops(pixels, mean, std, pad, rows, columns, flips):
    """Image by image: standardise, pad by the mean colour, crop, mirror."""
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
    # 18 outcomes: the pairs of neighbouring places, and of neighbouring steps, fill an 18 x 18 table evenly.
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
def test_parts_can_be_switched_off(augmentation):
    rows, columns, flips = AugmentationDraws(augmentation, 0, 500).at(0)
    assert set(rows) == set(columns) == set(range(2 * augmentation.pad + 1))
    assert set(flips) == ({0, 1} if augmentation.flip else {0})


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("pad", [0, 1, 4])
def test_crops_are_those_of_the_paper(channels_last, channels, pad):
    pixels = images(channels=channels)
    mean, std = MEAN[:channels], STD[:channels]
    store = ImageStore(pixels, mean, std, pad=pad, channels_last=channels_last)
    # Every offset and flip, on images with repetition.
    side = 2 * pad + 1
    rows, columns, flips = (part.ravel() for part in np.meshgrid(range(side), range(side), range(2)))
    indices = np.random.default_rng(1).integers(0, len(pixels), len(rows))
    got = store.crops(indices, rows, columns, flips)
    assert got.dtype == torch.float32
    expected = slow_crops(pixels[indices], mean, std, pad, rows, columns, flips)
    np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=1e-6)
    memory = torch.channels_last if channels_last else torch.contiguous_format
    assert got.is_contiguous(memory_format=memory)
    assert (got.stride(1) == 1) == channels_last  # also with one channel, where `is_contiguous` cannot tell


@pytest.mark.parametrize("channels_last", [False, True])
def test_plain_images(channels_last):
    pixels = images()
    store = ImageStore(pixels, MEAN, STD, pad=3, channels_last=channels_last)
    expected = ((pixels / 255 - MEAN) / STD).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(store.plain(np.arange(20)).numpy(), expected, rtol=0, atol=1e-6)
    centre = np.full(20, 3)
    assert (store.crops(np.arange(20), centre, centre, 0 * centre) == store.plain(np.arange(20))).all()


def test_the_last_image_may_be_cropped_at_its_last_corner():
    store = ImageStore(images(), MEAN, STD, pad=4)
    last, corner = np.array([19]), np.array([8])
    assert store.crops(last, corner, corner, np.array([0])).shape == (1, 3, 7, 6)


def test_the_images_given_are_not_touched():
    pixels = images()
    before = pixels.copy()
    pixels.setflags(write=False)
    store = ImageStore(pixels, MEAN, STD, pad=1)
    store.plain(np.arange(3)).zero_()
    np.testing.assert_array_equal(pixels, before)
    assert store.plain(np.arange(3)).abs().max() > 0


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"pad": -1}, ValueError, "pad should be at least 0, but got -1"),
        ({"pad": 65}, ValueError, "pad should be at most 64"),
        ({"pad": 1.0}, TypeError, "pad should be an int"),
        ({"flip": 1}, TypeError, "flip should be True or False"),
    ],
)
def test_wrong_arguments(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        Augmentation(**arguments)
