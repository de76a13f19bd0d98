"""Sequenced replacement for streamed data: a bounded pool over any iterable, with exact resume.

`PooledStream` is the pool. `Shards` and `TextLines` are sources that can begin at any position.
"""

from replenish.stream.pooled import PooledStream as PooledStream
from replenish.stream.shards import Shards as Shards
from replenish.stream.sources import TextLines as TextLines
