"""`Batches`: tensors to train on, made from an order, a dataset and an augmentation.

The device holds the images once, as padded bytes. A row of a crop is a run of bytes, so one `index_select` gathers a
whole batch of crops, from a view of the memory in which a row starts at every byte. Mirrored images are flipped
together, and the conversion to float, the mean and the standard deviation take one pass each. There is no Python loop
over images, and the same operations run on any device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

import numpy as np
import torch

from replenish import checks
from replenish.draws import Int64Array
from replenish.lab.data.augment import AlternatingFlips, Augmentation, AugmentationDraws
from replenish.lab.data.dataset import Dataset, Float64Array, UInt8Array
from replenish.lab.data.images import is_large
from replenish.orders.protocol import Order
from replenish.orders.visits import visits_of
from replenish.sharding import check_replicas, check_shares, share_of

Batch = tuple[torch.Tensor, torch.Tensor]
Split = Literal["train", "test", "held_out"]


class Batches:
    """The tensors of every training step, and of the test split.

    The device holds the training images as bytes (images too large for memory stay in their file). A few operations
    there gather, augment and standardise a whole batch, so no worker processes are needed. Batch `step` is a pure
    function of (order, dataset, augmentation, seed, step): a resumed run repeats it exactly, and the shares of all
    ranks, in order, are the batch that a single process would see.

    Args:
        order: Which samples make up each batch; its `num_samples` is the number of training images.
        dataset: The images and labels.
        augment: True for the paper's augmentation, False for none, or an `Augmentation`.
        device: Where images are kept and batches made.
        num_replicas: The number of processes that share each batch.
        rank: The number of this process, from 0.
        seed: The seed of the augmentation; the order has its own.
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
        """Yield this rank's images (float32 NCHW) and labels (int64), step by step.

        Args:
            start_step: The first step; the steps before it are not computed.
            stop: The step before which to stop, or None for an endless iterator.
        """
        return (batch for _, batch in self.steps(start_step, stop))

    def steps(self, start_step: int = 0, stop: int | None = None) -> Iterator[tuple[Int64Array, Batch]]:
        """Yield, for each step, the indices of the global batch and this rank's images and labels."""
        start_step = checks.step(start_step, "start_step")
        indices = self.order.batches(start_step, stop)  # not in the generator, so that a wrong argument fails here
        return self._steps(start_step, indices)

    def batch(self, step: int) -> Batch:
        """Return this rank's images and labels of one step."""
        return next(self._steps(checks.step(step), iter([self.order.batch(step)])))[1]

    def ordered(self, split: Split = "test", batch_size: int = 250) -> Iterator[Batch]:
        """Yield the images and labels of a split in their own order, not augmented.

        Each rank gets one part, and the parts together are the split, so counts of errors can be summed
        over the ranks.

        Args:
            split: The name of the split.
            batch_size: Images in a batch; the last batch may have fewer.
        """
        checks.one_of("split", split, get_args(Split))
        if getattr(self.dataset, f"{split}_images") is None:
            raise ValueError(f"split is {split!r}, but {self.dataset.name} was loaded without it")
        batch_size = checks.integer("batch_size", batch_size, minimum=1)
        return self._ordered(split, batch_size)

    def config(self) -> dict[str, Any]:
        """Return plain values that identify these batches, for any number of processes."""
        return {
            "order": self.order.config(),
            "data": self.dataset.fingerprint,
            "pad": self.augmentation.pad,
            "flip": int(self.augmentation.flip),
            "augmentation_seed": self.seed,
            **({"alternating": 1} if self.augmentation.alternating else {}),  # only if used: earlier records lack it
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
                # The draws are for a full global batch, so they do not depend on the number of processes.
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


def to_device(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]], device: torch.device) -> torch.Tensor:
    """Return an array as a tensor on a device. The processor does not wait for the copy to a GPU."""
    tensor = torch.from_numpy(array)
    if device.type == "cuda":  # copies without waiting need pinned memory
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


class ImageStore:
    """Standardised crops of uint8 images, on any device.

    Padding is the mean colour, to the nearest of the 256 levels. After the standardisation it is about 0, as in the
    paper, which first normalises and then pads (section 3.1). The bytes are stored as planes or, if `channels_last`,
    with the channels last, so that neither memory format needs a transposition.

    Args:
        images: uint8 array of (images, height, width, channels).
        mean: Mean of each channel, on the scale where 255 is 1.
        std: Standard deviation of each channel, on the same scale.
        pad: Pixels of padding on each side. A crop starts at 0 to 2 * pad in each direction.
        device: Where the bytes are kept and the batches made.
        channels_last: Whether batches have torch's channels_last memory format.

    Example:
        >>> import numpy as np
        >>> image = np.array([[[[0], [255]]]], dtype=np.uint8)
        >>> store = ImageStore(image, mean=np.array([0.5]), std=np.array([0.5]))
        >>> store.plain(np.array([0])).tolist()
        [[[[-1.0, 1.0]]]]
    """

    def __init__(
        self,
        images: UInt8Array,
        mean: Float64Array,
        std: Float64Array,
        *,
        pad: int = 0,
        device: torch.device | str = "cpu",
        channels_last: bool = False,
    ) -> None:
        count, height, width, channels = (int(side) for side in images.shape)
        self.height, self.width, self.channels = height, width, channels
        self.pad, self.device = pad, torch.device(device)
        # Apple's GPUs cannot index a view of 2**31 elements, and `_rows` is often larger: the CPU makes their batches.
        self._bytes_at = torch.device("cpu") if self.device.type == "mps" else self.device
        self._channels_last = channels_last
        # Either planes of single bytes, or one plane of whole pixels. All code below handles both.
        self._planes = 1 if channels_last else self.channels
        self._depth = self.channels if channels_last else 1
        height, width = height + 2 * pad, width + 2 * pad
        shape = (self._planes, 1, 1, self._depth)
        padded = np.empty((count, self._planes, height, width, self._depth), dtype=np.uint8)
        padded[:] = np.rint(255 * mean).reshape(shape)
        inside = padded[:, :, pad : pad + self.height, pad : pad + self.width]
        inside[:] = images[:, np.newaxis] if channels_last else images.transpose(0, 3, 1, 2)[..., np.newaxis]

        self._row_stride, self._image_stride = width * self._depth, padded[0].size
        places = np.arange(self._planes)[:, np.newaxis] * height + np.arange(self.height)
        self._row_places = self._tensor(places.ravel() * self._row_stride)
        # A view with a row for each byte: the row of a crop that would start there.
        self._rows = self._tensor(padded).view(-1).unfold(0, self.width * self._depth, 1)

        # One value for each byte of an image, since broadcasting along runs of 3 would be ten times slower.
        each = np.ones((self._planes, self.height, self.width, self._depth))
        self._mean = self._tensor((255 * mean.reshape(shape) * each).astype(np.float32))
        self._scale = self._tensor((each / (255 * std.reshape(shape))).astype(np.float32))

    def plain(self, indices: Int64Array) -> torch.Tensor:
        """Return the images of `indices` as they are, standardised: float32 (images, channels, height, width)."""
        corner = self.pad * (self._row_stride + self._depth)
        return self._standardised(self._gather(indices * self._image_stride + corner))

    def crops(self, indices: Int64Array, rows: Int64Array, columns: Int64Array, flips: Int64Array) -> torch.Tensor:
        """Return the images of `indices`, padded, cropped, mirrored and standardised.

        `rows` and `columns` are where each crop starts in the padded image, from 0 to 2 * pad. `flips` is 1 for crops
        that are mirrored left to right, else 0. The crop is mirrored, not the image: mirroring first would give the
        crop on the opposite side, which is as likely.
        """
        starts = indices * self._image_stride + rows * self._row_stride + columns * self._depth
        # Images to be mirrored are gathered first, flipped together, and put back.
        order = np.argsort(1 - flips, kind="stable")
        images = self._gather(starts[order])
        front = images[: int(flips.sum())]
        front[:] = front.flip(3)
        return self._standardised(images.index_select(0, self._tensor(np.argsort(order))))

    def _gather(self, starts: Int64Array) -> torch.Tensor:
        """Return the crops that start at these bytes: uint8 (images, planes, height, width, depth)."""
        places = self._tensor(starts)[:, None] + self._row_places
        crops = self._rows.index_select(0, places.view(-1))
        return crops.view(-1, self._planes, self.height, self.width, self._depth)

    def _standardised(self, images: torch.Tensor) -> torch.Tensor:
        values = images.float().sub_(self._mean).mul_(self._scale).to(self.device)
        if self._channels_last:
            return values.squeeze(1).permute(0, 3, 1, 2)
        return values.squeeze(4)

    def _tensor(self, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> torch.Tensor:
        return to_device(array, self._bytes_at)


class MappedImageStore:
    """An `ImageStore` for a file of images that is too large for memory: it reads and pads the images of each batch.

    The arguments are the same as for `ImageStore`.
    """

    def __init__(self, images: UInt8Array, mean: Float64Array, std: Float64Array, **options: Any) -> None:
        self._images, self._arguments, self._options = images, (mean, std), options

    def plain(self, indices: Int64Array) -> torch.Tensor:
        """Return what `ImageStore.plain` returns."""
        return self._of(indices).plain(np.arange(len(indices)))

    def crops(self, indices: Int64Array, rows: Int64Array, columns: Int64Array, flips: Int64Array) -> torch.Tensor:
        """Return what `ImageStore.crops` returns."""
        return self._of(indices).crops(np.arange(len(indices)), rows, columns, flips)

    def _of(self, indices: Int64Array) -> ImageStore:
        return ImageStore(self._images[indices], *self._arguments, **self._options)
