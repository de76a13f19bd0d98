"""Prints the draws of a sampler with a private generator."""

from __future__ import annotations

import random
from collections.abc import Iterator

from torch.utils.data import DataLoader, Sampler


class Own(Sampler[int]):
    def __init__(self) -> None:
        self.hidden = [random.Random(3)]

    def __len__(self) -> int:
        return 12

    def __iter__(self) -> Iterator[int]:
        return iter(self.hidden[0].sample(range(12), 12))


loader = DataLoader(range(12), batch_size=4, sampler=Own(), num_workers=1)
for _ in range(3):
    print([batch.tolist() for batch in loader], flush=True)
