"""What linear SGD makes of noise: on a quadratic, the stationary variance of the weight.

With learning rate eta, curvature h and heavy-ball momentum beta the next weight is (1 + beta - step) w - beta w_before
- eta x, where step = eta h and x is the noise. kappa = step / (1 - beta) N/B is curvature times effective learning
rate, per epoch.
"""

from __future__ import annotations

from replenish.theory.arguments import real
from replenish.theory.noise_laws import NoiseLaw

_DOUBLE_POLE = 1e-4  # how near, in parts, two poles are taken as this far apart


def stable_step(law: NoiseLaw, kappa: float, momentum: float) -> float:
    """Return learning rate times curvature, for SGD that is stable."""
    step = kappa * (1 - momentum) * law.share
    if step >= 2 * (1 + momentum):
        raise ValueError(
            f"kappa should be below {2 * (1 + momentum) / (1 - momentum) / law.share:g}, or SGD diverges, but got "
            f"{kappa}"
        )
    return step


def variance(law: NoiseLaw, step: float, momentum: float) -> float:
    """Return the variance, in units that depend on neither the order nor the learning rate."""
    white = step * (1 + momentum) / ((1 - momentum) * (2 * (1 + momentum) - step))
    return white * variance_ratio(law, step, momentum)


def variance_ratio(law: NoiseLaw, step: float, momentum: float) -> float:
    """Return the variance over that under white noise.

    With r = 1 - u the poles solve u^2 - (1 - beta + step) u + step = 0. The weight under white noise is correlated over
    d steps like a_1 r_1^|d| + a_2 r_2^|d|, which is 1 at d = 0 and 1 - step / (1 + beta) at d = 1; and the variance is
    the sum over d of this times the covariance of the noise.
    """
    if momentum == 0:
        return law.covariance_sum(step).real
    middle = (1 - momentum + step) / 2
    apart = complex(middle**2 - step) ** 0.5
    if abs(apart) < _DOUBLE_POLE * middle:  # two equal poles: the sum is even in their distance, so smooth there
        apart = complex(_DOUBLE_POLE * middle)
        large, small = middle + apart, middle - apart
    else:
        large = middle + apart
        small = step / large  # exact also where it is tiny
    fall = step / (1 + momentum)
    weight = (large - fall) / (large - small)
    total = weight * law.covariance_sum(small) + (1 - weight) * law.covariance_sum(large)
    return total.real


def checked_momentum(value: float) -> float:
    """Return a momentum in [0, 1), or raise."""
    momentum = real("momentum", value, most=1)
    if momentum == 1:
        raise ValueError(f"momentum should be below 1, or SGD never forgets, but got {value}")
    return momentum
