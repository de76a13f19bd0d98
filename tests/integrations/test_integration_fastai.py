"""fastai itself: its Learner with a loader of torch, and its own DataLoaders under `using`."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from torchvision_operators import import_torchvision, is_installed

if not is_installed("fastai"):
    pytest.skip("needs fastai", allow_module_level=True)

import torch
from contracts import as_lists
from torch import nn

from replenish import SequencedReplacement
from replenish.torch import reorder, using

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # it uses what torch and pandas deprecate

DATA = [(torch.tensor(index), torch.tensor(0.0)) for index in range(103)]


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    import_torchvision()
    import fastai.data.load  # noqa: F401  # before `using`, which patches the loaders that are imported


def data_loaders(workers: int = 0, **options: Any) -> Any:
    from fastai.data.core import DataLoaders

    defaults = {"bs": 8, "num_workers": workers, "shuffle": True, "drop_last": False, "device": torch.device("cpu")}
    return DataLoaders.from_dsets(DATA, DATA[:9], **{**defaults, **options})


def epoch(number: int) -> list[list[int]]:
    batches = as_lists(SequencedReplacement(103, 8, seed=5).batches(13 * number, 13 * number + 13))
    return [*batches[:-1], batches[-1][:7]]  # 103 = 12 * 8 + 7


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.seen: list[list[int]] = []

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.seen.append(numbers.tolist())
        return self.weight * numbers


@pytest.mark.parametrize("workers", [0, 2])
def test_a_learner_in_code_that_nobody_edits(workers: int) -> None:
    from fastai.learner import Learner

    with using("srs", seed=5) as patch:
        dls = data_loaders(workers)
        dls.one_batch()  # a look at the data is a pass
        learner = Learner(dls, Model(), loss_func=nn.MSELoss())
        learner.logger = lambda line: None
        learner.fit(2)
        learner.fit(1)
        assert learner.model.seen == [*epoch(1), *epoch(2), *epoch(3)]
        predictions, _ = learner.get_preds(ds_idx=0)
        assert len(predictions) == 103, "predictions are of every sample once"
    assert sorted(chain.from_iterable(numbers.tolist() for numbers, _ in dls.train)) == list(range(103))
    train, *others = patch.summaries()
    assert "N = 103, B = 8: replaced by srs, seed 5: 4 passes begun (epochs 0 to 3), " in train
    assert all("left alone, it does not shuffle" in line for line in others)


def test_loaders_that_choose_samples_in_their_own_way_are_left_alone() -> None:
    from fastai.callback.data import WeightedDL

    with using("srs", seed=5) as patch:
        data_loaders(drop_last=True)
        WeightedDL(DATA, bs=8, wgts=range(1, 104), shuffle=True)
    assert patch.summaries()[-1].endswith("left alone, a WeightedDL chooses its samples in its own way")


def test_reorder_says_what_to_use_instead() -> None:
    with pytest.raises(TypeError, match=r"but got a fastai\..*; give replenish.torch.SRSBatchSampler to a loader"):
        reorder(data_loaders().train)
