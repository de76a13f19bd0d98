"""Data orders: which samples make up the mini-batch of every step. `ORDERS` lists them by name.

Each file has one algorithm, with all orders that use it.
"""

from replenish.orders.building import build_order as build_order
from replenish.orders.building import order_from_config as order_from_config
from replenish.orders.building import read_order as read_order
from replenish.orders.cursor import CursorOrder as CursorOrder
from replenish.orders.epochs import BlockReshuffling as BlockReshuffling
from replenish.orders.epochs import FlipFlop as FlipFlop
from replenish.orders.epochs import PairedReversal as PairedReversal
from replenish.orders.epochs import RandomReshuffling as RandomReshuffling
from replenish.orders.epochs import ShuffleOnce as ShuffleOnce
from replenish.orders.length_grouped import LengthGrouped as LengthGrouped
from replenish.orders.length_grouped import padding_share as padding_share
from replenish.orders.mixture import Mixture as Mixture
from replenish.orders.protocol import Order as Order
from replenish.orders.random_batch_sizes import BallsInBins as BallsInBins
from replenish.orders.random_batch_sizes import PoissonDraws as PoissonDraws
from replenish.orders.rebatched import Rebatched as Rebatched
from replenish.orders.registry import ORDERS as ORDERS
from replenish.orders.registry import OrderEntry as OrderEntry
from replenish.orders.repeated_augmentation import RepeatedAugmentation as RepeatedAugmentation
from replenish.orders.replacement import BatchedReplacement as BatchedReplacement
from replenish.orders.replacement import IndependentDraws as IndependentDraws
from replenish.orders.replacement import WeightedDraws as WeightedDraws
from replenish.orders.sequenced_replacement import SequencedReplacement as SequencedReplacement
from replenish.orders.sequences import weighted_sequence as weighted_sequence
from replenish.orders.shard_shuffles import BlockShuffle as BlockShuffle
from replenish.orders.shard_shuffles import Jitter as Jitter
from replenish.orders.shard_shuffles import ShuffleBuffer as ShuffleBuffer
from replenish.orders.shards import shard_opens as shard_opens
from replenish.orders.skipping import Skipping as Skipping
from replenish.orders.stratified import Stratified as Stratified
from replenish.orders.visits import Visits as Visits
from replenish.orders.visits import counts_before as counts_before
from replenish.orders.visits import steps_of as steps_of
