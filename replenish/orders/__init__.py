"""Data orders: which samples make up the mini-batch of every step. `ORDERS` lists them by name.

One order per file; those that differ by a line share one.
"""

from replenish.orders.balls_in_bins import BallsInBins as BallsInBins
from replenish.orders.batched_replacement import BatchedReplacement as BatchedReplacement
from replenish.orders.block_reshuffling import BlockReshuffling as BlockReshuffling
from replenish.orders.block_shuffle import BlockShuffle as BlockShuffle
from replenish.orders.by_name import build_order as build_order
from replenish.orders.cursor import CursorOrder as CursorOrder
from replenish.orders.independent_draws import IndependentDraws as IndependentDraws
from replenish.orders.jitter import Jitter as Jitter
from replenish.orders.length_grouped import LengthGrouped as LengthGrouped
from replenish.orders.length_grouped import padding_share as padding_share
from replenish.orders.mixture import Mixture as Mixture
from replenish.orders.poisson_draws import PoissonDraws as PoissonDraws
from replenish.orders.protocol import Order as Order
from replenish.orders.random_reshuffling import RandomReshuffling as RandomReshuffling
from replenish.orders.rebatched import Rebatched as Rebatched
from replenish.orders.rebuilding import order_from_config as order_from_config
from replenish.orders.rebuilding import read_order as read_order
from replenish.orders.registry import ORDERS as ORDERS
from replenish.orders.registry import OrderEntry as OrderEntry
from replenish.orders.related_epochs import FlipFlop as FlipFlop
from replenish.orders.related_epochs import PairedReversal as PairedReversal
from replenish.orders.related_epochs import ShuffleOnce as ShuffleOnce
from replenish.orders.repeated_augmentation import RepeatedAugmentation as RepeatedAugmentation
from replenish.orders.sequenced_replacement import SequencedReplacement as SequencedReplacement
from replenish.orders.shards import shard_opens as shard_opens
from replenish.orders.shuffle_buffer import ShuffleBuffer as ShuffleBuffer
from replenish.orders.skipping import Skipping as Skipping
from replenish.orders.stratified import Stratified as Stratified
from replenish.orders.visits import Visits as Visits
from replenish.orders.visits import counts_before as counts_before
from replenish.orders.visits import steps_of as steps_of
from replenish.orders.weighted import weighted_sequence as weighted_sequence
from replenish.orders.weighted_draws import WeightedDraws as WeightedDraws
