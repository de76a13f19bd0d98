"""Training a run, from a config to a result, on any hardware that Lightning Fabric supports.

Start with `loop`, which uses `measuring`, `checkpoint`, `networks` and `processes`.
"""

from replenish.lab.models.layers import weights_sha256
from replenish.lab.stopping import Stopped
from replenish.lab.training.loop import Watch, train
from replenish.lab.training.measuring import DivergedError
from replenish.lab.training.networks import load_network, named_model

__all__ = ["DivergedError", "Stopped", "Watch", "load_network", "named_model", "train", "weights_sha256"]
