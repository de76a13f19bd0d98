from __future__ import annotations

import os
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest
from test_data_fakes import (
    COARSE,
    fake_contents,
    fake_files,
    hostile_members,
    python2_pickle,
    whole_pickle,
    write_archive,
    write_folder,
)

from replenish.lab.data import DATASETS, DataError, load, reduce
from replenish.lab.data.cifar import (
    CIFAR100,
    CIFAR100_COARSE,
    data_root,
    load_cifar,
    unpickle,
)

CONTENTS = fake_contents(CIFAR100)
FILES = fake_files(CIFAR100, CONTENTS)


def test_every_form_gives_the_same_and_unpacks_nothing(tmp_path: Path):
    fingerprints = set()
    for form in ("folder", "tar.gz", "tar.xz"):
        root = tmp_path / form
        root.mkdir()
        if form == "folder":
            path = write_folder(root, FILES, CONTENTS)
        else:
            path = write_archive(root / f"cifar-100-python.{form}", FILES, CONTENTS)
        fingerprints |= {load_cifar(FILES, place).fingerprint for place in (root, path)}
        assert [entry.name for entry in root.iterdir()] == [path.name]
    assert len(fingerprints) == 1


def test_pixels_come_with_the_channel_last(tmp_path: Path):
    write_folder(tmp_path, FILES, CONTENTS)
    stored = unpickle(CONTENTS["train"], "train")
    assert isinstance(stored, dict)
    dataset = load_cifar(FILES, tmp_path)
    pixels = stored[b"data"]
    assert dataset.train_images[2, 5, 7, 1] == pixels[2, 1024 + 5 * 32 + 7]
    assert dataset.train_labels.tolist() == stored[b"fine_labels"]


def test_coarse_labels_belong_to_the_same_images_also_after_a_reduction(tmp_path: Path):
    write_folder(tmp_path, FILES, CONTENTS)
    fine, coarse = load_cifar(FILES, tmp_path), load_cifar(fake_files(CIFAR100_COARSE, CONTENTS), tmp_path)
    assert coarse.class_names == ("coarse 0", "coarse 1")
    for keep in ({}, {"images_per_class": 1}, {"images_per_class": 2, "seed": 3, "held_out": True, "image_size": 4}):
        few_fine, few_coarse = reduce(fine, **keep), reduce(coarse, **keep)
        np.testing.assert_array_equal(few_coarse.train_images, few_fine.train_images)
        np.testing.assert_array_equal(few_coarse.train_labels, np.array(COARSE)[few_fine.train_labels])
        np.testing.assert_array_equal(few_coarse.test_images, few_fine.test_images)
        np.testing.assert_array_equal(few_coarse.test_labels, np.array(COARSE)[few_fine.test_labels])
    np.testing.assert_array_equal(few_coarse.held_out_labels, np.array(COARSE)[few_fine.held_out_labels])
    again = reduce(reduce(coarse, images_per_class=2), images_per_class=1)  # the finer labels are still there
    np.testing.assert_array_equal(
        again.train_images, reduce(reduce(fine, images_per_class=2), images_per_class=1).train_images
    )
    with pytest.raises(ValueError, match="at most 3 for cifar100-coarse, but got 4: subclass 0 has 3 training images"):
        reduce(coarse, images_per_class=4)


def test_headers_with_the_times_of_files_are_skipped(tmp_path: Path):
    """Python's own tarfile writes such headers."""
    folder = write_folder(tmp_path, FILES, CONTENTS)
    (tmp_path / "packed").mkdir()
    with tarfile.open(tmp_path / "packed" / "cifar-100-python.tar.xz", "w:xz", format=tarfile.PAX_FORMAT) as archive:
        archive.add(folder, "cifar-100-python")
    assert load_cifar(FILES, tmp_path / "packed").fingerprint == load_cifar(FILES, tmp_path).fingerprint


def test_root_comes_before_the_variable_and_that_before_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("REPLENISH_DATA", raising=False)
    assert data_root() == tmp_path / "cache" / "replenish"
    monkeypatch.setenv("REPLENISH_DATA", str(tmp_path / "named"))
    assert data_root() == tmp_path / "named"
    assert data_root(tmp_path / "given") == tmp_path / "given"


def test_absent_data_are_refused_with_advice(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="cifar100 is not in .* with `replenish data get cifar100`"):
        load("cifar100", tmp_path)


def test_altered_missing_and_truncated_files(tmp_path: Path):
    folder = write_folder(tmp_path, FILES, CONTENTS)
    (folder / "test").write_bytes(CONTENTS["test"][:-1] + b"!")
    with pytest.raises(DataError, match=r"test is not the official file \(its md5 differs\)"):
        load_cifar(FILES, tmp_path)
    (folder / "test").write_bytes(CONTENTS["test"][:100])
    with pytest.raises(DataError, match="its md5 differs"):
        load_cifar(FILES, tmp_path)
    (folder / "test").unlink()
    with pytest.raises(DataError, match="test is missing"):
        load_cifar(FILES, tmp_path)


@pytest.mark.parametrize("form", ["tar.gz", "tar.xz"])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_truncated_archives(tmp_path: Path, form: str, share: float):
    path = write_archive(tmp_path / f"cifar-100-python.{form}", FILES, CONTENTS)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DataError, match="not a readable archive|is missing") as caught:
        load_cifar(FILES, tmp_path)
    assert "\n" not in str(caught.value)


def test_an_altered_byte_is_found_or_does_not_change_the_data(tmp_path: Path):
    rng = np.random.default_rng(0)
    path = write_archive(tmp_path / "cifar-100-python.tar.gz", FILES, CONTENTS)
    content, expected = path.read_bytes(), load_cifar(FILES, tmp_path).fingerprint
    sentences = []
    for place in (*range(20), *rng.integers(0, len(content), 100).tolist()):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            assert load_cifar(FILES, tmp_path).fingerprint == expected
        except DataError as error:
            sentences.append(str(error))
    assert len(sentences) > 80
    assert not any("\n" in sentence for sentence in sentences)


@pytest.mark.parametrize("kind", sorted(hostile_members()))
def test_hostile_members_are_not_unpacked(tmp_path: Path, kind: str):
    member = hostile_members()[kind]
    write_archive(tmp_path / "cifar-100-python.tar.gz", FILES, CONTENTS, extra=(member,))
    if "link" in kind:  # it replaces a file of the data
        with pytest.raises(DataError, match="train is not the official file"):
            load_cifar(FILES, tmp_path)
    else:
        assert load_cifar(FILES, tmp_path).num_classes == 4
    assert [entry.name for entry in tmp_path.iterdir()] == ["cifar-100-python.tar.gz"]
    assert not Path("/tmp/replenish-outside").exists()


def test_a_member_of_absurd_size(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("replenish.lab.data.cifar.MAX_FILE_BYTES", 1000)
    write_archive(tmp_path / "cifar-100-python.tar.gz", FILES, CONTENTS)
    with pytest.raises(DataError, match="far too large"):
        load_cifar(FILES, tmp_path)


class Calls:
    """An object that unpickling turns into a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def hostile_pickles(witness: Path) -> dict[str, bytes]:
    array = python2_pickle(np.zeros((2, 3), np.uint8))
    return {
        "os.mkdir": pickle.dumps(Calls(os.mkdir, str(witness)), protocol=2),
        "eval": b"c__builtin__\neval\n(S'1'\ntR.",
        "exec by INST": b"(S'import os'\nibuiltins\nexec\n.",
        "other array type": array.join([b"\x80\x02", b"."]).replace(b"u1", b"O8"),
        "a state for a name": b"\x80\x02cnumpy\ndtype\n}U\x04codeU\x01xsb.",
        "dotted": b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.__init__\x93.",
        "truncated": whole_pickle({b"data": 1})[:-3],
        "text": b"this is no pickle",
    }


@pytest.mark.parametrize("kind", sorted(hostile_pickles(Path("x"))))
def test_hostile_pickles_call_nothing(tmp_path: Path, kind: str):
    witness = tmp_path / "witness"
    with pytest.raises(DataError, match="^the file ") as caught:
        unpickle(hostile_pickles(witness)[kind], "the file")
    assert not witness.exists()
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_the_real_cifar100(real_cifar100: Path):
    dataset, known = load("cifar100", real_cifar100), DATASETS["cifar100"]
    assert (
        dataset.train_images.shape == (50000, 32, 32, 3) == (known.train_images, known.image_size, 32, known.channels)
    )
    assert dataset.test_images.shape == (10000, 32, 32, 3)
    assert (known.test_images, known.classes) == (10000, 100)
    assert np.bincount(dataset.train_labels).tolist() == [500] * 100
    assert np.bincount(dataset.test_labels).tolist() == [100] * 100
    assert dataset.class_names[:3] == ("apple", "aquarium_fish", "baby")
    # The first training image is of cattle.
    assert dataset.class_names[dataset.train_labels[0]] == "cattle"
    assert dataset.mean.round(4).tolist() == [0.5071, 0.4865, 0.4409]
    assert dataset.std.round(4).tolist() == [0.2673, 0.2564, 0.2762]
    assert dataset.fingerprint == "6ea278d9f7adabc496788748d9ddfe59c92010122417e3447d63837f7dd19dea"
