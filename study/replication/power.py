"""How many pairs of runs settle the question at the paper's own scale, and their cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from replenish.lab.experiments import decisive_configs
from replenish.lab.experiments.costs import GPU_RATE, known_data, run_cost
from replenish.lab.report.grouping import Group
from replenish.lab.show import Column, Table
from replenish.lab.statistics import paired_difference
from replenish.lab.verdict import SIGNIFICANT
from study.decisive import HALF, PAIRS
from study.replication.evidence import Evidence
from study.replication.judgement import judge
from study.replication.plan import COMPARISONS

#: Standard deviation, in points, of the test error of WRN-28-10 on CIFAR-100 over runs that differ only in the seed:
#: 0.23 over three runs (Izmailov et al. 2018, table 1), rounded up.
PUBLISHED_DEVIATION = 0.3
_PAIRS = (2, 3, 4, 5)
_FEWEST = 5


def chance_to_settle(pairs: int, deviation: float) -> float:
    """Return the probability that this many pairs distinguish the published gain from no gain.

    The threshold is half of the gain, so both possibilities are equally far from it. The interval excludes the
    threshold with the power of a one-sample t test: one minus the noncentral t distribution at the two-sided 5 %
    quantile.

    Example:
        >>> [round(chance_to_settle(pairs, 0.42), 2) for pairs in (2, 3)]
        [0.65, 1.0]
    """
    from scipy.special import nctdtr, stdtrit

    freedom = pairs - 1
    quantile = float(stdtrit(freedom, 1 - SIGNIFICANT / 2))
    return 1 - float(nctdtr(freedom, abs(HALF) * math.sqrt(pairs) / deviation, quantile))


def known_deviations(evidence: Evidence, table3: Mapping[str, Group]) -> dict[str, float]:
    """Return known standard deviations of a paired difference, in points, by source.

    Comparisons with fewer than five pairs are left out.
    """
    found = {"two runs of WRN-28-10, published": math.sqrt(2) * PUBLISHED_DEVIATION}
    rows = [table3[name] for name in ("table3/wrn-srs-b64-120-150-175", "table3/wrn-b64-120-150-175") if name in table3]
    if len(rows) == 2:
        first = paired_difference(rows[0].errors, rows[1].errors)
        if first.deviation and first.n >= _FEWEST:
            found[f"first result, mini, n = {first.n}"] = first.deviation
    for comparison in COMPARISONS:
        if comparison.name in ("primary", "mini"):
            effect = judge(comparison, evidence, "test_error").effect
            if effect is not None and effect.deviation and effect.n >= _FEWEST:
                name = "primary comparison" if comparison.name == "primary" else "part mini"
                found[f"{name} of the study, n = {effect.n}"] = effect.deviation
    return found


def power_table(deviations: Mapping[str, float]) -> Table:
    """Return the table of the chance to settle, by number of pairs and standard deviation."""
    columns = [
        Column("standard deviation of a pair, from", lambda row: row[0], numeric=False),
        Column("points", lambda row: f"{row[1]:.2f}"),
        *(Column(f"{pairs} pairs", partial(_cell, pairs)) for pairs in _PAIRS),
    ]
    return Table("power", "The chance to settle", columns, [(row[0], row) for row in deviations.items()])


def cost_sentence() -> str:
    """Return the cost of the stages of the decisive experiment."""
    config = decisive_configs()["decisive/srs"]
    cost = run_cost(config, known_data(config))
    hours = cost.gpu_hours
    return (
        f"Stage 1 is 2 runs of about {hours:.0f} GPU-hours, {2 * hours:.0f} in all. Stage 2 adds {2 * PAIRS - 2} runs, "
        f"about {(2 * PAIRS - 2) * hours:.0f} GPU-hours. A run has {cost.multiply_adds / 1e15:.0f} P multiply-adds, at "
        f"{GPU_RATE / 1e12:.0f} T per second, which a data-centre card of about 15 TFLOPS reaches in single precision. "
        "That is an estimate, good to a factor of two or so. Lower precision on newer cards is faster."
    )


def _cell(pairs: int, row: tuple[str, float]) -> str:
    value = chance_to_settle(pairs, row[1])
    return "> 0.999" if value > 0.999 else f"{value:.3f}"
