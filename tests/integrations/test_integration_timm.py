"""timm's loaders with another order, and networks of timm and torchvision by name in `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torchvision_operators import import_torchvision, is_installed

if not is_installed("timm"):
    pytest.skip("needs timm", allow_module_level=True)

import torch
from contracts import as_lists
from PIL import Image
from torch.utils.data import Dataset

from replenish import SequencedReplacement
from replenish.lab import compare
from replenish.lab.data import as_dataset
from replenish.torch import reorder, using


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    import_torchvision()


class Numbered(Dataset[Any]):
    """Images with their indices as targets; timm sets the transform."""

    transform: Any = None

    def __len__(self) -> int:
        return 103

    def __getitem__(self, index: int) -> Any:
        return self.transform(Image.new("RGB", (32, 32))), index


def create_loader(**options: Any) -> Any:
    import timm.data

    defaults = {"is_training": True, "num_workers": 0, "device": torch.device("cpu")}
    return timm.data.create_loader(Numbered(), (3, 32, 32), 8, **{**defaults, **options})


def stream(start: int, stop: int) -> list[list[int]]:
    return as_lists(SequencedReplacement(103, 8, seed=5).batches(start, stop))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("prefetcher", [True, False])
def test_every_loader_that_timm_makes(prefetcher: bool, workers: int) -> None:
    theirs = create_loader(use_prefetcher=prefetcher, num_workers=workers)
    loader = reorder(theirs, seed=5)
    assert type(loader) is type(theirs)
    assert len(loader) == len(theirs) == 12
    for epoch in (3, 4):
        loader.sampler.set_epoch(epoch)
        assert [numbers.tolist() for _, numbers in loader] == stream(12 * epoch, 12 * epoch + 12)
    # The prefetcher is a batch ahead of the training, so the training passes the step.
    loader.sampler.set_epoch(5)
    assert len([numbers for _, (_, numbers) in zip(range(7), loader, strict=False)]) == 7
    with pytest.raises(ValueError, match=r"call state_dict\(step\)"):
        loader.sampler.state_dict()
    again = reorder(create_loader(use_prefetcher=prefetcher, num_workers=workers), seed=5)
    again.sampler.load_state_dict(loader.sampler.state_dict(67))
    assert [numbers.tolist() for _, numbers in again] == stream(67, 72)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("endless", [True, False])
def test_using_replaces_the_order_of_timms_loaders(endless: bool, workers: int) -> None:
    with using("srs", seed=5) as patch:
        loader = create_loader(use_multi_epochs_loader=endless, num_workers=workers)
        seen = [numbers.tolist() for _ in range(2) for _, numbers in loader]
    assert seen == stream(0, 24)
    (record,) = patch.records
    assert (record.order, record.seed) == ("srs", 5)


def test_loaders_that_cannot_be_reordered_are_refused() -> None:
    with pytest.raises(TypeError, match="batch sampler of torch, .* but got a ScheduledBatchSampler"):
        reorder(create_loader(input_size_choices=[32, 48]))
    with pytest.raises(TypeError, match="is around it, which may read ahead .*use_multi_epochs_loader"):
        reorder(create_loader(use_multi_epochs_loader=True))


@pytest.mark.parametrize("model", ["timm:test_resnet", "torchvision:mobilenet_v3_small"])
def test_networks_by_name_and_a_dataset_of_torchvision(model: str, tmp_path: Path) -> None:
    import torchvision.datasets

    images = as_dataset(torchvision.datasets.FakeData(size=40, image_size=(3, 16, 16), num_classes=2))
    found = compare(images, model=model, orders=("reshuffling", "srs"), seeds=2, epochs=1, batch_size=16, runs=tmp_path)
    assert found.verdicts[0].outcome == "undecided"
    assert f"{model}@" in "".join(path.read_text() for path in tmp_path.rglob("config.json"))
    with pytest.raises(ValueError, match=rf"{model.partition(':')[0]} could not make 'nonesuch'"):
        compare(images, model=f"{model.partition(':')[0]}:nonesuch", epochs=1, runs=tmp_path)
