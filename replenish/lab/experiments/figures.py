"""The curves of the paper's figures 2 and 3; those of figure 2 are rows 2 to 4 of table 3, so the same runs."""

from __future__ import annotations

from replenish.lab.config import RunConfig
from replenish.lab.experiments import table3


def srs_60_120_160() -> RunConfig:
    """Return SRS with the learning rate dropped by ten at 60 already: the text's "about 23 %"."""
    return RunConfig(decay_epochs=(60, 120, 160))


def srs_90_135_168() -> RunConfig:
    """Return SRS with a schedule between the two that the text names (our choice of epochs)."""
    return RunConfig(decay_epochs=(90, 135, 168))


def srs_150_175_190() -> RunConfig:
    """Return SRS with the large learning rate kept longer still (our choice of epochs)."""
    return RunConfig(decay_epochs=(150, 175, 190))


EXPERIMENTS = {
    "figure2/wrn-60-120-160": table3.wrn_b64_60_120_160,
    "figure2/wrn-120-150-175": table3.wrn_b64_120_150_175,
    "figure2/wrn-srs-120-150-175": table3.wrn_srs_b64_120_150_175,
    "figure3/srs-60-120-160": srs_60_120_160,
    "figure3/srs-90-135-168": srs_90_135_168,
    "figure3/srs-120-150-175": table3.wrn_srs_b64_120_150_175,
    "figure3/srs-150-175-190": srs_150_175_190,
}
