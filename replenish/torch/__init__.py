"""Orders and streams for PyTorch: samplers for a `DataLoader`, and a dataset that pools a stream.

All samplers count *steps* of a global stream without end. One pass (one `iter()`) runs from the sampler's position to
the end of the epoch. See docs/howto/resume.md.
"""

from typing import TYPE_CHECKING, Any

try:
    from replenish.torch.progress import Progress as Progress
    from replenish.torch.reorder import reorder as reorder
    from replenish.torch.samplers import OrderBatchSampler as OrderBatchSampler
    from replenish.torch.samplers import ReshufflingBatchSampler as ReshufflingBatchSampler
    from replenish.torch.samplers import SRSBatchSampler as SRSBatchSampler
    from replenish.torch.samplers import SRSSampler as SRSSampler
    from replenish.torch.shuffle_patch import using as using
    from replenish.torch.warm import warm as warm
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "torch":
        raise  # torch is installed, and one of its own imports failed
    raise ImportError("replenish.torch needs PyTorch: pip install 'replenish[torch]'") from error

if TYPE_CHECKING:
    from replenish.torch.stream import PooledIterableDataset as PooledIterableDataset
else:

    def __getattr__(name: str) -> Any:
        """Import the streams at their first use, since `replenish exec` does not need them in the user's process."""
        if name != "PooledIterableDataset":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from replenish.torch.stream import PooledIterableDataset

        return PooledIterableDataset
