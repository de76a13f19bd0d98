"""Sequenced-replacement sampling (SRS) for deep learning.

Importing this package needs numpy alone. The PyTorch adapters are in `replenish.torch`.
"""

from replenish import diagnostics as diagnostics
from replenish import mixing as mixing
from replenish import stream as stream
from replenish import theory as theory
from replenish.baselines import BatchedReplacement as BatchedReplacement
from replenish.baselines import FlipFlop as FlipFlop
from replenish.baselines import IndependentDraws as IndependentDraws
from replenish.baselines import RandomReshuffling as RandomReshuffling
from replenish.baselines import ShuffleOnce as ShuffleOnce
from replenish.order import Order as Order
from replenish.sequenced import SequencedReplacement as SequencedReplacement
from replenish.sequences import weighted_sequence as weighted_sequence

__version__ = "0.1.0.dev0"
