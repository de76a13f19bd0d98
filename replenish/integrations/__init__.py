"""Adapters for frameworks that need more than a PyTorch sampler; each module needs its own framework.

PyTorch with DDP, torchdata, Lightning, Fabric and Accelerate take the samplers of `replenish.torch` as they are:
see the pages in docs/integrations.
"""
