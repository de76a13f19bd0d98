"""Sequenced-replacement sampling (SRS) for deep learning.

It needs only numpy, and imports it when a name is first used, so that `replenish --help` starts fast.
The PyTorch adapters are in `replenish.torch`.
"""

from typing import TYPE_CHECKING

from replenish.deferred import attributes as _attributes

__version__ = "0.1.0"

if TYPE_CHECKING:
    from replenish import diagnostics as diagnostics
    from replenish import orders as orders
    from replenish import stream as stream
    from replenish import theory as theory
    from replenish.auditing.audit import audit as audit
    from replenish.orders import BallsInBins as BallsInBins
    from replenish.orders import BatchedReplacement as BatchedReplacement
    from replenish.orders import BlockReshuffling as BlockReshuffling
    from replenish.orders import BlockShuffle as BlockShuffle
    from replenish.orders import FlipFlop as FlipFlop
    from replenish.orders import IndependentDraws as IndependentDraws
    from replenish.orders import Jitter as Jitter
    from replenish.orders import LengthGrouped as LengthGrouped
    from replenish.orders import Mixture as Mixture
    from replenish.orders import Order as Order
    from replenish.orders import PairedReversal as PairedReversal
    from replenish.orders import PoissonDraws as PoissonDraws
    from replenish.orders import RandomReshuffling as RandomReshuffling
    from replenish.orders import RepeatedAugmentation as RepeatedAugmentation
    from replenish.orders import SequencedReplacement as SequencedReplacement
    from replenish.orders import ShuffleBuffer as ShuffleBuffer
    from replenish.orders import ShuffleOnce as ShuffleOnce
    from replenish.orders import Skipping as Skipping
    from replenish.orders import Stratified as Stratified
    from replenish.orders import WeightedDraws as WeightedDraws
    from replenish.orders import weighted_sequence as weighted_sequence
else:
    _MODULES = ("diagnostics", "orders", "stream", "theory")
    _ORDERS = """
        BallsInBins BatchedReplacement BlockReshuffling BlockShuffle FlipFlop IndependentDraws Jitter LengthGrouped
        Mixture Order PairedReversal PoissonDraws RandomReshuffling RepeatedAugmentation SequencedReplacement
        ShuffleBuffer ShuffleOnce Skipping Stratified WeightedDraws weighted_sequence
    """
    __getattr__, __dir__, __all__ = _attributes(
        __name__, {"audit": "auditing", **{name: name for name in _MODULES}, **dict.fromkeys(_ORDERS.split(), "orders")}
    )
