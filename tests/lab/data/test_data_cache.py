"""The cache of decoded data: files are decoded once, and decoded again when they change."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from replenish import SequencedReplacement
from replenish.lab.data import Batches, Dataset, cache, image_folder, load
from replenish.lab.data import images as image_stack
from replenish.lab.data.dataset import ARRAYS


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of images that has not changed for a while; the cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "images"
    for number in range(20):
        path = folder / f"class {number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, number)
    for path in folder.rglob("*"):
        os.utime(path, (1e9, 1e9))
    return folder


def write(path: Path, level: int) -> None:
    Image.fromarray(np.full((8, 8), level, np.uint8)).save(path)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the name of every image that is decoded."""
    names: list[str] = []
    honest = image_folder._pixels

    def pixels(file: Path) -> object:
        names.append(file.name)
        return honest(file)

    monkeypatch.setattr(image_folder, "_pixels", pixels)
    return names


def entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "replenish" / "decoded").iterdir())


def same(one: Dataset, two: Dataset) -> bool:
    arrays = all(np.array_equal(getattr(one, name), getattr(two, name)) for name in ARRAYS)
    return arrays and one.fingerprint == two.fingerprint and (one.name, one.class_names) == (two.name, two.class_names)


def test_data_are_decoded_once_for_each_reduction(images: Path, decoded: list[str]) -> None:
    first = load(images, images_per_class=3, image_size=4, held_out=True)
    assert len(decoded) == 20
    assert same(load(images, images_per_class=3, image_size=4, held_out=True), first)
    assert len(decoded) == 20
    for change in ({"images_per_class": 4}, {"seed": 1}, {"image_size": 3}, {"held_out": False}):
        before = len(decoded)
        load(images, **{"images_per_class": 3, "image_size": 4, "held_out": True, **change})
        assert len(decoded) == before + 20, change


@pytest.mark.parametrize("change", ["content", "new", "gone"])
def test_files_that_changed_are_decoded_again(images: Path, change: str) -> None:
    first = load(images)
    if change == "content":
        write(images / "class 0" / "2.png", 200)
        os.utime(images / "class 0" / "2.png", (1e9 + 1, 1e9 + 1))
    elif change == "new":
        write(images / "class 0" / "new.png", 200)
    else:
        (images / "class 0" / "2.png").unlink()
    assert load(images).fingerprint != first.fingerprint


def test_recently_changed_files_are_not_cached(images: Path, tmp_path: Path, decoded: list[str]) -> None:
    os.utime(images / "class 0" / "2.png")
    load(images)
    load(images)
    assert len(decoded) == 40
    assert not (tmp_path / "cache").exists()


def test_a_damaged_entry_is_decoded_again(images: Path, tmp_path: Path, decoded: list[str]) -> None:
    first = load(images)
    [entry] = entries(tmp_path)
    whole = {file.name: file.read_bytes() for file in entry.iterdir()}
    pixels = whole["train_images.npy"]
    place = pixels.index(first.train_images.tobytes())
    for damaged in (b"", pixels[:-100], pixels[:place] + b"!" + pixels[place + 1 :], None):
        if damaged is None:
            (entry / "train_images.npy").unlink()
        else:
            (entry / "train_images.npy").write_bytes(damaged)
        before = len(decoded)
        assert same(load(images), first)
        assert len(decoded) == before + 20
        assert {file.name: file.read_bytes() for file in entry.iterdir()} == whole
    assert entries(tmp_path) == [entry]


def test_old_entries_make_room(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(images)
    [first] = entries(tmp_path)
    os.utime(first, (1e9, 1e9))
    monkeypatch.setattr(cache, "MAX_BYTES", 2 * sum(file.stat().st_size for file in first.iterdir()))
    load(images, seed=1)
    load(images, seed=2)
    assert len(entries(tmp_path)) == 2
    assert first not in entries(tmp_path)


def test_leftovers_of_earlier_releases_and_killed_processes_are_removed(images: Path, tmp_path: Path) -> None:
    load(images)
    folder = entries(tmp_path)[0].parent
    (folder / "0f.npz").write_bytes(b"an entry of an earlier release")
    (folder / "0f.123").mkdir()
    for left in ("0f.npz", "0f.123"):
        os.utime(folder / left, (1e9, 1e9))
    load(images, seed=1)
    assert [entry.suffix for entry in entries(tmp_path)] == ["", ""]


def test_an_unwritable_cache_is_not_an_error(images: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert len(load(images).train_labels) == 16


def test_large_images_stay_in_a_file(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers decode into a file, and later loads map it. The data and the batches stay the same."""
    Image.fromarray(np.full((8, 8, 3), 9, np.uint8)).save(images / "class 1" / "99.png")  # the last image has colours
    os.utime(images / "class 1" / "99.png", (1e9, 1e9))
    os.utime(images / "class 1", (1e9, 1e9))
    small = load(images, seed=1)
    order = SequencedReplacement(len(small.train_labels), 8)
    monkeypatch.setattr(image_stack, "IN_MEMORY", 500)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    decoded, cached = load(images, seed=1), load(images, seed=1)
    assert len(list((tmp_path / "other" / "replenish" / "decoded").iterdir())) == 1  # nothing temporary is left
    for large in (decoded, cached):
        assert isinstance(large.train_images, np.memmap)
        assert same(large, small)
        for step in (0, 3):
            assert torch.equal(Batches(order, large).batch(step)[0], Batches(order, small).batch(step)[0])
        for one, two in zip(Batches(order, large).ordered("test"), Batches(order, small).ordered("test"), strict=True):
            assert torch.equal(one[0], two[0])
