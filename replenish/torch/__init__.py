"""Orders and streams for PyTorch: samplers that a `DataLoader` takes, and a dataset that pools a stream.

All samplers count *steps* of the global stream, which never ends. A pass (one `iter()`) begins at the sampler's
position and ends with the effective epoch; the position moves when a pass comes to its end, and where `set_epoch`,
`seek` and `load_state_dict` say. Nothing is drawn or counted before the first `next()` of a pass, since a DataLoader
with workers asks for two iterators and uses one.
"""

try:
    from replenish.torch.batch_samplers import OrderBatchSampler as OrderBatchSampler
    from replenish.torch.batch_samplers import SRSBatchSampler as SRSBatchSampler
    from replenish.torch.index_sampler import SRSSampler as SRSSampler
    from replenish.torch.reorder import reorder as reorder
    from replenish.torch.stream import PooledIterableDataset as PooledIterableDataset
    from replenish.torch.using import using as using
    from replenish.torch.warm import warm as warm
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "torch":
        raise  # it is there, and lacks something itself
    raise ImportError("replenish.torch needs PyTorch: pip install 'replenish[torch]'") from error
