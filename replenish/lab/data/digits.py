"""The handwritten digits that come with scikit-learn: real images without a download."""

from __future__ import annotations

import numpy as np

from replenish.lab.data.dataset import Dataset
from replenish.lab.data.image_choice import held_out


def load_digits() -> Dataset:
    """Return the 1797 handwritten digits of 8 x 8 pixels that come with scikit-learn, in a fixed split."""
    # Imported here: scikit-learn takes a second to import, and only these digits need it.
    from sklearn import datasets

    bunch = datasets.load_digits()
    # Grey levels from 0 to 16 become 0 to 255, to the nearest.
    images = ((bunch.images.astype(np.int64) * 255 + 8) // 16).astype(np.uint8)[..., np.newaxis]
    labels = bunch.target.astype(np.int64)
    test = held_out(labels, 10, 0, "digits")
    names = tuple(str(digit) for digit in range(10))
    return Dataset(images[~test], labels[~test], images[test], labels[test], names, "digits")
