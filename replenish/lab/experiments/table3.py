"""The paper's table 3: is it the batch size, the schedule or the sampling? WRN-28-10 on CIFAR-100."""

from __future__ import annotations

from replenish.lab.config import RunConfig

#: The schedule of Zagoruyko and Komodakis, which the paper calls the original one.
ORIGINAL_DECAY_EPOCHS, ORIGINAL_DECAY_FACTOR = (60.0, 120.0, 160.0), 0.2


def wrn_b128_60_120_160() -> RunConfig:
    """Return row 1: reshuffling, B = 128, the original schedule."""
    return RunConfig(
        order="reshuffling",
        batch_size=128,
        decay_epochs=ORIGINAL_DECAY_EPOCHS,
        decay_factor=ORIGINAL_DECAY_FACTOR,
    )


def wrn_b64_60_120_160() -> RunConfig:
    """Return row 2: reshuffling, B = 64, the original schedule."""
    return RunConfig(order="reshuffling", decay_epochs=ORIGINAL_DECAY_EPOCHS, decay_factor=ORIGINAL_DECAY_FACTOR)


def wrn_b64_120_150_175() -> RunConfig:
    """Return row 3: reshuffling, B = 64, the large learning rate kept longer."""
    return RunConfig(order="reshuffling")


def wrn_srs_b64_120_150_175() -> RunConfig:
    """Return row 4: SRS, B = 64, the large learning rate kept longer."""
    return RunConfig(order="srs")


EXPERIMENTS = {
    "table3/wrn-b128-60-120-160": wrn_b128_60_120_160,
    "table3/wrn-b64-60-120-160": wrn_b64_60_120_160,
    "table3/wrn-b64-120-150-175": wrn_b64_120_150_175,
    "table3/wrn-srs-b64-120-150-175": wrn_srs_b64_120_150_175,
}
