"""Images held once on a device as padded bytes, from which standardised crops are gathered a batch at a time.

Each row of a crop is a run of bytes. So a whole batch of crops is one `index_select` over a view of the memory in
which every byte starts a row. Mirrored images are flipped together, and the conversion to float, the mean and the
standard deviation take one pass each. There is no Python loop over images, and the same operations run on any device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from replenish.lab.data.dataset import Float64Array, Int64Array, UInt8Array


def to_device(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]], device: torch.device) -> torch.Tensor:
    """Return an array as a tensor on a device; a copy to a GPU starts without waiting for the GPU's earlier work."""
    tensor = torch.from_numpy(array)
    if device.type == "cuda":  # only from pinned memory does the processor not wait
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


class ImageStore:
    """Standardised crops of uint8 images, on any device.

    Padding is the mean colour, to the nearest of the 256 levels: about 0 after the standardisation, since
    the paper first normalises and then pads (section 3.1). The bytes lie as planes, or with the channels last
    if `channels_last`, so that neither memory format needs a transposition.

    Args:
        images: uint8 array of (images, height, width, channels).
        mean: Mean of each channel, where 255 is 1.
        std: Standard deviation of each channel, on the same scale.
        pad: How many pixels of padding each side has; a crop starts at 0 to 2 * pad in each direction.
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
        # Planes of single bytes, or one plane of pixels: everything below serves both.
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
        # A view with one row for each byte: the row of pixels that begins there.
        self._rows = self._tensor(padded).view(-1).unfold(0, self.width * self._depth, 1)

        # One value for each byte of an image: to broadcast along runs of 3 would be ten times slower.
        each = np.ones((self._planes, self.height, self.width, self._depth))
        self._mean = self._tensor((255 * mean.reshape(shape) * each).astype(np.float32))
        self._scale = self._tensor((each / (255 * std.reshape(shape))).astype(np.float32))

    def plain(self, indices: Int64Array) -> torch.Tensor:
        """Return the images of `indices` as they are, standardised: float32 (images, channels, height, width)."""
        corner = self.pad * (self._row_stride + self._depth)
        return self._standardised(self._gather(indices * self._image_stride + corner))

    def crops(self, indices: Int64Array, rows: Int64Array, columns: Int64Array, flips: Int64Array) -> torch.Tensor:
        """Return the images of `indices`, padded, cropped, mirrored and standardised.

        Each crop has its first row and column in the padded image, 0 to 2 * pad, and 1 if it is mirrored left to right,
        else 0. To mirror the image first would give the crop that lies opposite, which is as likely.
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
    """What `ImageStore` gives, from images that are not copied: each batch is read and padded when it is asked for.

    For images in a file that is too large for memory. The arguments are the same as for `ImageStore`.
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
