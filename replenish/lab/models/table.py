"""The table of the networks: the cost of each, with the paper's figures."""

from __future__ import annotations

from dataclasses import dataclass

from replenish.lab.models.registry import MODELS, PATTERNS, ModelEntry, cost, parameters, shapes_only
from replenish.lab.show import Cell, Column, Table

#: Why a count differs from the paper's, where we know or can guess.
_WHY = {
    "resnet-1202": "He et al. print 19.4M too; 10.2M is in the Wide ResNet paper's comparison",
    "resnet-1202-stochastic-depth": "as for resnet-1202",
    "wrn-70-10": "with 3x3 convolutions in the shortcuts it is 106.4M, but then wrn-28-10 is 38.6M; 70 = 6 x 11 + 4",
    "dsn": "companions included: 0.97M without them, at 10 classes",
}


@dataclass(frozen=True)
class CountedNetwork:
    """A network, its parameters with 10 and 100 classes, and its multiply-adds for one 32x32 image with 10 classes."""

    entry: ModelEntry
    parameters10: int
    parameters100: int
    multiply_adds: int

    @property
    def remark(self) -> str:
        """How the counts differ from the paper's, or another remark, or ""."""
        printed, why = self.entry.paper_parameters, _WHY.get(self.entry.name, "")
        counted = [_millions(self.parameters10), _millions(self.parameters100)]
        differs = f"differs: we count {' or '.join(dict.fromkeys(counted))}" if printed not in ("", *counted) else ""
        return "; ".join(filter(None, (differs, why)))


COLUMNS = (
    Column("name", lambda network: Cell(network.entry.name, code=True), numeric=False),
    Column("row of the paper's table 2", lambda network: network.entry.paper_row, numeric=False, brief=False),
    Column("parameters, 10 classes", lambda network: f"{network.parameters10:,}"),
    Column("100 classes", lambda network: f"{network.parameters100:,}", brief=False),
    Column("the paper prints", lambda network: network.entry.paper_parameters),
    Column("multiply-adds", lambda network: f"{network.multiply_adds / 1e6:,.0f}M"),
    Column("remark", lambda network: network.remark, numeric=False, brief=False),
)


def models_table() -> Table:
    """Return the table of all networks of `MODELS`."""
    networks = []
    for name, entry in MODELS.items():
        ten = cost(name)
        hundred = parameters(shapes_only(name, num_classes=100))
        networks.append((name, CountedNetwork(entry, ten.parameters, hundred, ten.multiply_adds)))
    return Table("models", "Networks", COLUMNS, networks, f"Other sizes: {', '.join(PATTERNS)}")


def _millions(count: int) -> str:
    """Return a count in millions, with as many decimals as in the paper."""
    return f"{count / 1e6:.1f}M" if count >= 1e6 else f"{count / 1e6:.2f}M"
