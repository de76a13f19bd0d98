"""The theory of data orders: the paper's counts, the laws of the pool, the noise of an order.

The counts are the accessible configurations of the paper's section 2. The laws of the pool tell how long a copy stays,
how often a sample is drawn and how many samples an epoch misses. Both are functions of (num_samples, batch_size, ...).
The laws of an order's noise and of its effect on SGD are functions of an order.
"""

from replenish.theory.counts import batches_per_epoch as batches_per_epoch
from replenish.theory.counts import configurations_conventional as configurations_conventional
from replenish.theory.counts import configurations_ratio as configurations_ratio
from replenish.theory.counts import configurations_with_replacement as configurations_with_replacement
from replenish.theory.counts import configurations_without_replacement as configurations_without_replacement
from replenish.theory.counts import log10_configurations_conventional as log10_configurations_conventional
from replenish.theory.counts import log10_configurations_ratio as log10_configurations_ratio
from replenish.theory.counts import log10_configurations_with_replacement as log10_configurations_with_replacement
from replenish.theory.counts import log10_configurations_without_replacement as log10_configurations_without_replacement
from replenish.theory.counts import log10_term_ratio as log10_term_ratio
from replenish.theory.counts import term_ratio as term_ratio
from replenish.theory.gap_laws import GapLaw as GapLaw
from replenish.theory.order_laws import NoiseSpectrum as NoiseSpectrum
from replenish.theory.order_laws import NoLawError as NoLawError
from replenish.theory.order_laws import noise_spectrum as noise_spectrum
from replenish.theory.order_laws import visit_gaps as visit_gaps
from replenish.theory.pool_laws import copies_inserted as copies_inserted
from replenish.theory.pool_laws import count_spread as count_spread
from replenish.theory.pool_laws import count_spread_independent as count_spread_independent
from replenish.theory.pool_laws import count_variance as count_variance
from replenish.theory.pool_laws import equal_pairs_independent as equal_pairs_independent
from replenish.theory.pool_laws import expected_copies as expected_copies
from replenish.theory.pool_laws import expected_draws as expected_draws
from replenish.theory.pool_laws import expected_equal_pairs as expected_equal_pairs
from replenish.theory.pool_laws import limit_copies as limit_copies
from replenish.theory.pool_laws import limit_count_spread as limit_count_spread
from replenish.theory.pool_laws import limit_equal_pairs as limit_equal_pairs
from replenish.theory.pool_laws import limit_unseen_fraction as limit_unseen_fraction
from replenish.theory.pool_laws import mean_residence as mean_residence
from replenish.theory.pool_laws import residence_probability as residence_probability
from replenish.theory.pool_laws import unseen_fraction as unseen_fraction
from replenish.theory.pool_laws import unseen_fraction_batched as unseen_fraction_batched
from replenish.theory.pool_laws import unseen_fraction_independent as unseen_fraction_independent
from replenish.theory.pool_laws import unseen_fraction_reshuffling as unseen_fraction_reshuffling
from replenish.theory.pool_laws import unseen_probability as unseen_probability
from replenish.theory.sgd import OrdersDiffer as OrdersDiffer
from replenish.theory.sgd import equivalent_learning_rate as equivalent_learning_rate
from replenish.theory.sgd import noise_variance as noise_variance
from replenish.theory.sgd import sorted_data_warning as sorted_data_warning
from replenish.theory.sgd import when_orders_differ as when_orders_differ
