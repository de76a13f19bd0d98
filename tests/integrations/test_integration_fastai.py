"""fastai itself: its DataLoaders and Learner with another order, positions and all."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
from torchvision_operators import import_torchvision, is_installed

if not is_installed("fastai"):
    pytest.skip("needs fastai", allow_module_level=True)

import torch
from contracts import as_lists
from integration_support import EXAMPLES, check_log, run
from torch import nn
from torchvision_operators import __file__ as with_torchvision

from replenish import SequencedReplacement
from replenish.torch import reorder

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # it uses what torch and pandas deprecate

DATA = [(torch.tensor(index), torch.tensor(0.0)) for index in range(103)]


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    import_torchvision()


def data_loaders(workers: int = 0, **options: Any) -> Any:
    from fastai.data.core import DataLoaders

    given = {"bs": 8, "num_workers": workers, "shuffle": True, "drop_last": False, "device": torch.device("cpu")}
    return DataLoaders.from_dsets(DATA, DATA[:9], **{**given, **options})


def stream(start: int, stop: int) -> list[list[int]]:
    return as_lists(SequencedReplacement(103, 8, seed=5).batches(start, stop))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.seen: list[list[int]] = []

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.seen.append(numbers.tolist())
        return self.weight * numbers


def numbers_of(batches: Any) -> list[list[int]]:
    return [numbers.tolist() for numbers, _ in batches]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_learner(workers: int) -> None:
    from fastai.learner import Learner

    dls = data_loaders(workers)
    theirs, dls.train = dls.train, reorder(dls.train, seed=5)
    assert type(dls.train) is type(theirs)
    assert len(dls.train) == len(theirs) == 13
    dls.one_batch()  # a look at the data
    learner = Learner(dls, Model(), loss_func=nn.MSELoss())
    learner.logger = lambda line: None
    learner.fit(2)
    learner.fit(1)
    assert learner.model.seen == stream(0, 39)
    predictions, _ = learner.get_preds(ds_idx=0)
    assert len(predictions) == 103, "predictions are of every sample once"
    assert sorted(chain.from_iterable(numbers_of(theirs))) == list(range(103)), "the loader given must not change"

    # Within an epoch too: what was handed on, whatever the workers prefetch.
    batches = iter(dls.train)
    assert numbers_of(islice(batches, 4)) == stream(39, 43)
    resumed = reorder(dls.train, seed=5)
    resumed.sampler.load_state_dict(dls.train.sampler.state_dict())
    assert numbers_of(resumed) == numbers_of(batches) == stream(43, 52)
    assert numbers_of(resumed) == stream(52, 65)
    resumed.sampler.set_epoch(7)
    assert numbers_of(resumed) == stream(91, 104)


def test_other_orders_and_what_cannot_work() -> None:
    from fastai.callback.data import WeightedDL
    from fastai.distributed import DistributedDL

    train = data_loaders(drop_last=True).train
    reshuffled = numbers_of(reorder(train, "reshuffling"))
    assert (len(reshuffled), len(set(chain.from_iterable(reshuffled)))) == (12, 96)
    with pytest.raises(TypeError, match="a WeightedDL has a get_idxs of its own"):
        reorder(WeightedDL(DATA, bs=8, wgts=range(103)))
    with pytest.raises(TypeError, match="bs=8, n=50 and indexed=True"):
        reorder(data_loaders(n=50).train)
    with pytest.raises(ValueError, match="order should have the loader's 103 samples and batches of 8"):
        reorder(train, SequencedReplacement(50, 8))
    with pytest.raises(ValueError, match="order should have the loader's 12 steps an epoch, .* has 13"):
        reorder(train, SequencedReplacement(103, 8))
    with pytest.raises(ValueError, match="order should have batches of 8, into which fastai cuts its indices"):
        numbers_of(reorder(data_loaders().train, "poisson"))
    with pytest.raises(TypeError, match="another asks it for its indices, as fastai's DistributedDL does"):
        next(iter(DistributedDL(reorder(train), rank=0, world_size=2)))


def test_the_page(tmp_path: Path) -> None:
    for start, epochs in ((0, 2), (50, 1)):
        run(Path(with_torchvision), EXAMPLES / "train_fastai.py", tmp_path, "--epochs", epochs)
        check_log(tmp_path, start, start + 25 * epochs)
