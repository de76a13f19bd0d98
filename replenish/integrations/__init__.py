"""Adapters for frameworks. Each module needs its own framework.

DDP and Fabric take the samplers of `replenish.torch` without an adapter. See the pages in docs/integrations.
"""
