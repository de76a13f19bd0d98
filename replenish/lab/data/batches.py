"""`Batches`: an order, a dataset and an augmentation, joined into tensors to train on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

import numpy as np
import torch

from replenish import checks
from replenish.draws import Int64Array
from replenish.lab.data.augment import AlternatingFlips, Augmentation, AugmentationDraws
from replenish.lab.data.dataset import Dataset, UInt8Array
from replenish.lab.data.image_stack import is_large
from replenish.lab.data.image_store import ImageStore, MappedImageStore, to_device
from replenish.orders.protocol import Order
from replenish.orders.visits import visits_of
from replenish.sharding import check_replicas, check_shares, share_of

Batch = tuple[torch.Tensor, torch.Tensor]
Split = Literal["train", "test", "held_out"]


class Batches:
    """The tensors of every training step, and of the test split: what the lab trains from.

    The training images lie on the device once, as bytes (those too large for memory stay in their file); a batch is
    gathered, augmented and standardised there by a few operations on all of it, so no worker processes are needed.
    Batch `step` is a pure function of (order, dataset, augmentation, seed, step): a resumed run repeats it exactly, and
    the shares of all ranks, in order, are the batch that a single process would see.

    Args:
        order: Which samples make up each batch; its `num_samples` is the number of training images.
        dataset: The images and labels.
        augment: True for the paper's augmentation, False for none, or an `Augmentation`.
        device: Where images are kept and batches made.
        num_replicas: How many processes share each batch.
        rank: Which of them this is.
        seed: The seed of the augmentation, apart from the order's own.
        channels_last: Whether images have torch's channels_last memory format.

    Example:
        >>> from replenish import SequencedReplacement
        >>> from replenish.lab.data import Augmentation, load
        >>> digits = load("digits")
        >>> order = SequencedReplacement(len(digits.train_labels), batch_size=64)
        >>> batches = Batches(order, digits, augment=Augmentation(pad=1, flip=False))
        >>> images, labels = next(batches.batches(start_step=1000))
        >>> tuple(images.shape), labels.dtype
        ((64, 1, 8, 8), torch.int64)
    """

    def __init__(
        self,
        order: Order,
        dataset: Dataset,
        *,
        augment: bool | Augmentation = True,
        device: torch.device | str = "cpu",
        num_replicas: int = 1,
        rank: int = 0,
        seed: int = 0,
        channels_last: bool = False,
    ) -> None:
        if order.num_samples != len(dataset.train_labels):
            raise ValueError(
                f"order should be over the {len(dataset.train_labels)} training images of {dataset.name}, "
                f"but got num_samples={order.num_samples}"
            )
        if not isinstance(augment, (bool, Augmentation)):
            raise TypeError(f"augment should be True, False or an Augmentation, but got {augment!r}")
        self.order, self.dataset, self.seed = order, dataset, checks.seed(seed)
        self.augmentation = Augmentation() if augment is True else augment or Augmentation(pad=0, flip=False)
        self.num_replicas, self.rank = check_replicas(num_replicas, rank)
        check_shares(order, self.num_replicas)
        self.device = torch.device(device)
        self._channels_last = checks.boolean("channels_last", channels_last)
        self._train = self._store(dataset.train_images, self.augmentation.pad)
        self._stores: dict[str, ImageStore | MappedImageStore] = {"train": self._train}

    def batches(self, start_step: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield this rank's images (float32 NCHW) and labels (int64) of the steps from `start_step` on.

        Args:
            start_step: The first step; any step is reached without going through those before it.
            stop: The step before which to stop, or None for an endless iterator.
        """
        return (batch for _, batch in self.steps(start_step, stop))

    def steps(self, start_step: int = 0, stop: int | None = None) -> Iterator[tuple[Int64Array, Batch]]:
        """Yield what `batches` yields, each with the indices of the whole batch over all ranks."""
        start_step = checks.step(start_step, "start_step")
        indices = self.order.batches(start_step, stop)  # a wrong argument is an error here, not later
        return self._steps(start_step, indices)

    def batch(self, step: int) -> Batch:
        """Return what `batches` yields at `step`."""
        return next(self._steps(checks.step(step), iter([self.order.batch(step)])))[1]

    def ordered(self, split: Split = "test", batch_size: int = 250) -> Iterator[Batch]:
        """Yield the images and labels of a split in their own order, not augmented.

        Each rank gets one part, and the parts together are the split, so counts of errors can be summed
        over the ranks.

        Args:
            split: Which split.
            batch_size: Images in a batch; the last may have fewer.
        """
        checks.one_of("split", split, get_args(Split))
        if getattr(self.dataset, f"{split}_images") is None:
            raise ValueError(f"split is {split!r}, but {self.dataset.name} was loaded without it")
        batch_size = checks.integer("batch_size", batch_size, minimum=1)
        return self._ordered(split, batch_size)

    def config(self) -> dict[str, Any]:
        """Return plain values that name these batches completely, whatever the number of processes."""
        return {
            "order": self.order.config(),
            "data": self.dataset.fingerprint,
            "pad": self.augmentation.pad,
            "flip": int(self.augmentation.flip),
            "augmentation_seed": self.seed,
            **({"alternating": 1} if self.augmentation.alternating else {}),  # else the config that it always was
        }

    def _steps(self, start: int, batches: Iterator[Int64Array]) -> Iterator[tuple[Int64Array, Batch]]:
        draws = AugmentationDraws(self.augmentation, self.seed, self.order.batch_size)
        plain = self.augmentation.outcomes == 1
        alternating = AlternatingFlips(self.seed, self.order.num_samples) if self.augmentation.alternating else None
        visits = visits_of(self.order)
        for step, indices in enumerate(batches, start):
            mine = share_of(len(indices), self.num_replicas, self.rank)
            own = indices[mine]
            if plain:
                images = self._train.plain(own)
            else:
                # Drawn for the places of a full global batch, whatever this batch and this share are.
                rows, columns, flips = (drawn[: len(indices)][mine] for drawn in draws.at(step))
                if alternating is not None:
                    flips = alternating.at(own, visits(step)[mine])
                images = self._train.crops(own, rows, columns, flips)
            yield indices, (images, to_device(self.dataset.train_labels[own], self.device))

    def _ordered(self, split: str, batch_size: int) -> Iterator[Batch]:
        if split not in self._stores:
            self._stores[split] = self._store(getattr(self.dataset, f"{split}_images"), 0)
        store, labels = self._stores[split], getattr(self.dataset, f"{split}_labels")
        first, last = (len(labels) * rank // self.num_replicas for rank in (self.rank, self.rank + 1))
        for start in range(first, last, batch_size):
            indices = np.arange(start, min(start + batch_size, last))
            yield store.plain(indices), to_device(labels[indices], self.device)

    def _store(self, images: UInt8Array, pad: int) -> ImageStore | MappedImageStore:
        kind = MappedImageStore if is_large(images) else ImageStore
        options: dict[str, Any] = {"pad": pad, "device": self.device, "channels_last": self._channels_last}
        return kind(images, self.dataset.mean, self.dataset.std, **options)
