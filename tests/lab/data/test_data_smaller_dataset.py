from __future__ import annotations

import tracemalloc
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replenish.lab.data import load, reduce
from replenish.lab.data.images import area_average


def by_fractions(image, height, width):
    """Compute the definition pixel by pixel, in exact arithmetic."""
    old_height, old_width = image.shape
    result = np.empty((height, width), dtype=np.uint8)
    for row in range(height):
        for column in range(width):
            top, bottom = Fraction(row * old_height, height), Fraction((row + 1) * old_height, height)
            left, right = Fraction(column * old_width, width), Fraction((column + 1) * old_width, width)
            total = sum(
                int(image[y, x])
                * max(Fraction(0), min(bottom, y + 1) - max(top, y))
                * max(Fraction(0), min(right, x + 1) - max(left, x))
                for y in range(old_height)
                for x in range(old_width)
            )
            result[row, column] = floor(total / ((bottom - top) * (right - left)) + Fraction(1, 2))
    return result


sides = st.integers(1, 6)


@settings(max_examples=60)
@given(sides, sides, sides, sides, st.integers(0, 2**32 - 1))
def test_area_average_is_exact_for_any_ratio(old_height, old_width, height, width, seed):
    images = np.random.default_rng(seed).integers(0, 256, (2, old_height, old_width, 2), dtype=np.uint8)
    resized = area_average(images, height, width)
    for image in range(2):
        for channel in range(2):
            expected = by_fractions(images[image, :, :, channel], height, width)
            np.testing.assert_array_equal(resized[image, :, :, channel], expected)


def test_area_average_rounds_halves_up_and_keeps_extremes():
    assert area_average(np.array([[[[1], [2]]]], np.uint8), 1, 1).item() == 2
    assert (area_average(np.full((1, 7, 7, 1), 255, np.uint8), 3, 5) == 255).all()


def test_area_average_does_not_depend_on_the_piece_size(monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (9, 8, 8, 3), dtype=np.uint8)
    whole = area_average(images, 3, 3)
    monkeypatch.setattr("replenish.lab.data.images.VALUES_PER_PIECE", 400)
    np.testing.assert_array_equal(area_average(images, 3, 3), whole)


def test_area_average_of_a_large_image_needs_little_memory(monkeypatch):
    monkeypatch.setattr("replenish.lab.data.images.VALUES_PER_PIECE", 1 << 18)  # far below the image's 7 million
    image = np.random.default_rng(0).integers(0, 256, (1, 1500, 1500, 3), dtype=np.uint8)
    tracemalloc.start()
    try:
        small = area_average(image, 32, 32)
        assert tracemalloc.get_traced_memory()[1] < 4 * image.nbytes  # as float64 it would be eight times
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(small[0, :, :, 0], by_means(image[0, :, :, 0], 32))


def by_means(image, size):
    """Average over pixels that are repeated, so that every new pixel covers whole ones."""
    repeated = np.repeat(image.astype(np.int64), size, axis=0).reshape(size, image.shape[0], -1).sum(axis=1)
    sums = np.repeat(repeated, size, axis=1).reshape(size, size, image.shape[1]).sum(axis=2)
    area = image.size
    return (2 * sums + area) // (2 * area)


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def rows(images):
    return [image.tobytes() for image in images]


def test_without_arguments_nothing_changes(digits):
    assert reduce(digits) is digits
    assert reduce(digits, image_size=8) is digits


def test_images_per_class(digits):
    small = reduce(digits, images_per_class=7)
    assert np.bincount(small.train_labels).tolist() == [7] * 10
    assert small.test_images.shape == digits.test_images.shape
    # The images stay in the order of the full dataset.
    places = [rows(digits.train_images).index(row) for row in rows(small.train_images)]
    assert places == sorted(places)


def test_fewer_images_are_a_subset_of_more(digits):
    few, more = (set(rows(reduce(digits, images_per_class=count).train_images)) for count in (5, 20))
    assert few < more


def test_every_image_is_equally_likely_to_be_chosen(digits):
    ones = digits.train_images[digits.train_labels == 1]
    counts = dict.fromkeys((image.tobytes() for image in ones), 0)
    for seed in range(300):
        chosen = reduce(digits, images_per_class=10, seed=seed)
        for image in chosen.train_images[chosen.train_labels == 1]:
            counts[image.tobytes()] += 1
    values = np.array(list(counts.values()))
    expected = 300 * 10 / len(values)
    # About chi-square with one degree less than images; six standard deviations.
    assert ((values - expected) ** 2 / expected).sum() < len(values) + 6 * (2 * len(values)) ** 0.5


def test_the_choice_is_frozen(digits):
    small = reduce(digits, images_per_class=20, image_size=6, seed=1)
    assert digits.fingerprint == DIGITS
    assert small.fingerprint == SMALL


DIGITS = "92466ea2a355c89205c85f39ed9abd2285d94eea1c2217b0613ba337cb5fc372"
SMALL = "50463888db4dad7bb9ca382d2bbfadc62d136ff87ab18b3339ac492f351b4b94"


def test_held_out_images_are_the_training_images_not_kept(digits):
    small = reduce(digits, images_per_class=20, image_size=4, held_out=True)
    all_of_them = reduce(digits, image_size=4)
    together = np.concatenate([small.train_images, small.held_out_images])
    labels = np.concatenate([small.train_labels, small.held_out_labels])
    assert len(small.train_labels) == 200
    assert sorted(zip(rows(together), labels.tolist(), strict=True)) == sorted(
        zip(rows(all_of_them.train_images), all_of_them.train_labels.tolist(), strict=True)
    )
    # The training data are the same with and without held-out images.
    assert small.fingerprint == reduce(digits, images_per_class=20, image_size=4).fingerprint
    assert reduce(digits, images_per_class=20).held_out_images is None
    with pytest.raises(ValueError, match="held_out=True needs training images that are not kept"):
        reduce(digits, held_out=True)


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"images_per_class": 0}, ValueError, "images_per_class should be at least 1, but got 0"),
        ({"images_per_class": 10**6}, ValueError, "images_per_class should be at most .* training images"),
        ({"image_size": 10**6}, ValueError, "image_size should be at most"),
        ({"image_size": (8, 8, 1)}, ValueError, r"image_size should be an int or \(height, width\)"),
    ],
)
def test_wrong_arguments(digits, arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        reduce(digits, **arguments)
