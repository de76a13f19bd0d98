"""The table of networks in `docs/models.md` and in `replenish list models`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replenish.lab.models.count import cost, parameters_of
from replenish.lab.models.registry import MODELS

#: Why a count cannot be the paper's, where we know or can guess.
_WHY = {
    "resnet-1202": "He et al. print 19.4M too; 10.2M is in the Wide ResNet paper's comparison",
    "resnet-1202-stochastic-depth": "as for resnet-1202",
    "wrn-70-10": "no choice of unit or classes gives it; 70 = 6 x 11 + 4",
    "dsn": "companions included: 0.97M without them, at 10 classes",
}


@dataclass(frozen=True)
class Row:
    """A network, what it costs, and what the paper prints.

    Args:
        name: The name that `build` takes.
        parameters10: Parameters with 10 classes.
        parameters100: Parameters with 100 classes.
        multiply_adds: Multiply-adds of one 32x32 image with three channels, 10 classes.
        paper_row: The paper's row, or "".
        paper_parameters: The paper's figure as printed, or "".
        remark: Where and how the counts differ from the paper's, or another remark, or "".
    """

    name: str
    parameters10: int
    parameters100: int
    multiply_adds: int
    paper_row: str
    paper_parameters: str
    remark: str


def millions(count: int) -> str:
    """Return a count in millions, with as many digits as the paper prints."""
    return f"{count / 1e6:.1f}M" if count >= 1e6 else f"{count / 1e6:.2f}M"


def rows(names: Iterable[str] | None = None) -> list[Row]:
    """Return the rows of the table.

    Args:
        names: Names of networks; None for all of `MODELS`.

    Example:
        >>> rows(["resnet-1202"])[0].remark.split(";")[0]
        'differs: we count 19.4M'
    """
    table = []
    for name in MODELS if names is None else names:
        entry = MODELS[name]
        ten, hundred = cost(name), parameters_of(name, num_classes=100)
        counted = [millions(ten.parameters), millions(hundred)]
        remark = _WHY.get(name, "")
        if entry.paper_parameters and entry.paper_parameters not in counted:
            ours = " or ".join(dict.fromkeys(counted))
            remark = f"differs: we count {ours}" + (f"; {remark}" if remark else "")
        table.append(
            Row(
                name,
                ten.parameters,
                hundred,
                ten.multiply_adds,
                entry.paper_row,
                entry.paper_parameters,
                remark,
            )
        )
    return table


def markdown(table: Iterable[Row] | None = None) -> str:
    """Return the table in Markdown, as it stands in `docs/models.md`.

    Args:
        table: Its rows; None for all networks.
    """
    lines = [
        "| name | row of the paper's table 2 | parameters, 10 classes | 100 classes | the paper prints "
        "| multiply-adds | remark |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for row in rows() if table is None else table:
        lines.append(
            f"| `{row.name}` | {row.paper_row} | {row.parameters10:,} | {row.parameters100:,} "
            f"| {row.paper_parameters} | {row.multiply_adds / 1e6:,.0f}M | {row.remark} |"
        )
    return "\n".join(lines) + "\n"
