from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from replenish.lab.data import DataError, load


def picture(path: Path, seed: int, *, size=(6, 5), mode="RGB", **options) -> np.ndarray:
    """Write a random image of (height, width) and return its pixels."""
    shape = (*size, 3) if mode == "RGB" else size
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return pixels


def two_splits(root: Path) -> None:
    for split, count in (("train", 3), ("test", 2)):
        for label, name in enumerate(("cat", "dog")):
            for number in range(count):
                picture(root / split / name / f"{number}.png", 100 * label + 10 * number + len(split))


def test_train_and_test(tmp_path: Path):
    two_splits(tmp_path)
    dataset = load(tmp_path)
    assert dataset.train_images.shape == (6, 6, 5, 3)
    assert dataset.train_labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert dataset.test_labels.tolist() == [0, 0, 1, 1]
    assert dataset.class_names == ("cat", "dog")
    assert dataset.name == tmp_path.name
    np.testing.assert_array_equal(dataset.train_images[4], np.asarray(Image.open(tmp_path / "train/dog/1.png")))


def test_other_files_are_left_out(tmp_path: Path):
    two_splits(tmp_path)
    before = load(tmp_path).fingerprint
    (tmp_path / "train" / "cat" / "Thumbs.db").write_bytes(b"?")
    (tmp_path / "train" / "cat" / ".hidden.png").write_bytes(b"?")
    (tmp_path / "train" / ".cache").mkdir()
    (tmp_path / "train" / "notes.txt").write_text("?")
    assert load(tmp_path).fingerprint == before


def test_one_folder_is_split_by_the_seed(tmp_path: Path):
    for name, count in (("a", 10), ("b", 4), ("c", 2)):
        for number in range(count):
            picture(tmp_path / name / f"{number}.jpg", ord(name) * 100 + number)
    dataset = load(str(tmp_path), seed=1)
    assert np.bincount(dataset.test_labels).tolist() == [2, 1, 1]
    assert np.bincount(dataset.train_labels).tolist() == [8, 3, 1]
    assert load(tmp_path, seed=1).fingerprint == dataset.fingerprint
    assert load(tmp_path, seed=2).fingerprint != dataset.fingerprint
    images = {image.tobytes() for image in (*dataset.train_images, *dataset.test_images)}
    assert len(images) == 16


def test_grey_images_have_one_channel_and_mixed_ones_three(tmp_path: Path):
    for number in range(3):
        picture(tmp_path / "a" / f"{number}.png", number, mode="L")
        picture(tmp_path / "b" / f"{number}.png", 10 + number, mode="L")
    assert load(tmp_path).channels == 1
    picture(tmp_path / "b" / "3.png", 13)
    mixed = load(tmp_path)
    assert mixed.channels == 3
    grey = mixed.train_images[mixed.train_labels == 0]
    assert (grey == grey[..., :1]).all()


def test_palettes_transparency_and_orientation(tmp_path: Path):
    two_splits(tmp_path)
    rgba = np.random.default_rng(0).integers(0, 256, (6, 5, 4), dtype=np.uint8)
    Image.fromarray(rgba).save(tmp_path / "train" / "cat" / "0.png")
    Image.new("P", (5, 6), 3).save(tmp_path / "train" / "cat" / "1.png")
    turned = Image.Exif()
    turned[0x0112] = 6  # orientation: rotated by 90 degrees
    picture(tmp_path / "train" / "cat" / "2.jpg", 5, size=(5, 6), exif=turned)
    (tmp_path / "train" / "cat" / "2.png").unlink()
    dataset = load(tmp_path)
    assert dataset.image_size == (6, 5)
    np.testing.assert_array_equal(dataset.train_images[0], rgba[..., :3])


def test_several_sizes_need_image_size(tmp_path: Path):
    two_splits(tmp_path)
    picture(tmp_path / "test" / "dog" / "1.png", 5, size=(12, 10))
    with pytest.raises(DataError, match=r"1.png is 12 x 10 pixels but 0.png is 6 x 5; give an image size"):
        load(tmp_path)
    assert load(tmp_path, image_size=(6, 5)).image_size == (6, 5)
    assert load(tmp_path, image_size=4).image_size == (4, 4)


def test_an_empty_class(tmp_path: Path):
    two_splits(tmp_path)
    for split in ("train", "test"):
        (tmp_path / split / "eel").mkdir()
    with pytest.raises(DataError, match="eel has no .png, .*.gif images; every class needs at least one"):
        load(tmp_path)


def test_train_and_test_with_different_classes(tmp_path: Path):
    two_splits(tmp_path)
    picture(tmp_path / "test" / "eel" / "0.png", 1)
    with pytest.raises(DataError, match="class 'eel' is in test but not in train"):
        load(tmp_path)


def test_no_classes_and_too_few_images(tmp_path: Path):
    with pytest.raises(DataError, match="has no folders of images"):
        load(tmp_path)
    picture(tmp_path / "a" / "0.png", 0)
    with pytest.raises(DataError, match="a class with 1 images cannot be split"):
        load(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"no image", b"\x89PNG\r\n\x1a\n", b"GIF89a\x01\x00\x01\x00", "truncated"],
    ids=["empty", "text", "only a signature", "another format", "truncated"],
)
def test_files_that_are_not_images(tmp_path: Path, content: bytes | str):
    two_splits(tmp_path)
    target = tmp_path / "train" / "dog" / "1.png"
    target.write_bytes(target.read_bytes()[:60] if isinstance(content, str) else content)
    with pytest.raises(DataError, match=r"1.png is not a readable image") as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


def sixteen_bits(path: Path, colour_type: int, channels: int) -> None:
    """Write a PNG of 5 x 6 pixels with 16 bits per channel; Pillow writes only grey ones."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(b"\0" + bytes(2 * channels * 5) for _ in range(6))
    header = struct.pack(">IIBBBBB", 5, 6, 16, colour_type, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + parts)


@pytest.mark.parametrize(("colour_type", "channels"), [(0, 1), (2, 3), (4, 2), (6, 4)], ids=["L", "RGB", "LA", "RGBA"])
def test_images_of_16_bits_are_refused_in_grey_and_in_colour(tmp_path: Path, colour_type: int, channels: int):
    two_splits(tmp_path)
    sixteen_bits(tmp_path / "train" / "cat" / "0.png", colour_type, channels)
    with pytest.raises(DataError, match=r"0.png has more than 8 bits a channel .*; give images of 8 bits"):
        load(tmp_path)


def test_an_image_that_would_exhaust_memory(tmp_path: Path, monkeypatch):
    two_splits(tmp_path)
    monkeypatch.setattr("replenish.lab.data.image_folder.MAX_PIXELS", 20)
    with pytest.raises(DataError, match="0.png has 5 x 6 pixels; reduce it first"):
        load(tmp_path)


@pytest.mark.parametrize("suffix", [".webp", ".bmp", ".gif", ".JPG"])
def test_other_kinds_of_images(tmp_path: Path, suffix: str):
    two_splits(tmp_path)
    picture(tmp_path / "train" / "cat" / f"more{suffix}", 9)
    assert len(load(tmp_path).train_labels) == 7


def test_images_of_unsupported_kinds_are_refused(tmp_path: Path):
    two_splits(tmp_path)
    picture(tmp_path / "train" / "cat" / "scan.tiff", 9)
    with pytest.raises(DataError, match=r"scan.tiff is an image of a kind that is not read; give .png, .jpg"):
        load(tmp_path)
    (tmp_path / "train" / "cat" / "scan.tiff").unlink()
    frames = [Image.new("L", (5, 6), level) for level in (0, 200)]
    frames[0].save(tmp_path / "train" / "cat" / "moving.gif", save_all=True, append_images=frames[1:])
    with pytest.raises(DataError, match=r"moving.gif has 2 frames"):
        load(tmp_path)


def test_splits_by_other_names(tmp_path: Path):
    two_splits(tmp_path)
    expected = load(tmp_path).fingerprint
    (tmp_path / "__MACOSX" / "train").mkdir(parents=True)  # as in archives from a Mac
    (tmp_path / "train" / "__MACOSX").mkdir()
    assert load(tmp_path).fingerprint == expected
    (tmp_path / "train").rename(tmp_path / "Train")
    (tmp_path / "test").rename(tmp_path / "Test")
    assert load(tmp_path).fingerprint == expected
    (tmp_path / "Test").rename(tmp_path / "val")
    assert load(tmp_path).fingerprint == expected


def test_a_third_split_is_left_out_with_a_warning(tmp_path: Path):
    two_splits(tmp_path)
    picture(tmp_path / "val" / "cat" / "0.png", 1)
    with pytest.warns(UserWarning, match="val left out; train is for training and test for testing"):
        load(tmp_path)


def test_a_class_whose_name_is_not_utf8(tmp_path: Path):
    two_splits(tmp_path)
    for split in ("train", "test"):
        os.rename(tmp_path / split / "dog", os.fsencode(tmp_path / split) + b"/caf\xe9")
    with pytest.raises(DataError, match="has a name that is not UTF-8; rename it"):
        load(tmp_path)
