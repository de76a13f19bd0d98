"""What the paper prints: tables 1 to 3, and the one number that the text gives for figure 3.

Network names, experiments, reports and docs are built from these rows.

Errors are in percent; None is a "-" or an empty cell. Rows have the names of the experiments that run them:
`table2/<row>/<cifar10|cifar100>`, `table3/<row>`, `figure2/<line>`, `figure3/<line>`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dataset:
    """A column of table 1."""

    name: str
    label: str
    classes: int
    image_size: int
    channels: int
    train_images_per_class: int
    test_images_per_class: int


@dataclass(frozen=True)
class _Row:
    """A row of table 2 or 3, with the name of its experiment."""

    name: str

    @property
    def order(self) -> str:
        """The order, as the experiment's name implies it."""
        return "srs" if "srs" in self.name.split("/")[-1].split("-") else "reshuffling"


@dataclass(frozen=True)
class Table2Row(_Row):
    """A row of table 2, as printed; "" is an empty cell.

    The name is the part of the experiments' names between `table2/` and the dataset. The depth includes the widening
    factor. The reference "ours" is the paper's word for its authors' runs.
    """

    method: str
    reference: str
    depth: str
    parameters: str
    cifar10: float | None
    cifar100: float | None

    @property
    def ours(self) -> bool:
        """Whether the paper's authors ran it; then the error is the median of `MEDIAN_OF` runs."""
        return self.reference == "ours"

    @property
    def model(self) -> str:
        """The name of the network, as `replenish.lab.models` has it."""
        return self.name.removesuffix("-srs")


@dataclass(frozen=True)
class Table3Row(_Row):
    """A row of table 3: CIFAR-100, runs of the paper's authors."""

    method: str
    batch_size: int
    schedule: tuple[int, ...]
    decay: float
    error: float


@dataclass(frozen=True)
class Figure:
    """A figure of training loss and test error against the effective epoch; `lines` are (experiment, label)."""

    name: str
    title: str
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Claim:
    """Two experiments. The paper draws a conclusion from their difference, first minus second."""

    first: str
    second: str
    first_label: str
    second_label: str


#: The errors of "ours" are medians of this many runs (caption of table 2).
MEDIAN_OF = 5

TABLE1 = (
    Dataset("cifar10", "CIFAR-10", 10, 32, 3, 5000, 1000),
    Dataset("cifar100", "CIFAR-100", 100, 32, 3, 500, 100),
)

_STOCHASTIC_DEPTH = ("ResNet with Stochastic Depth", "Huang et al., 2016")
_WIDE_RESNET = ("Wide ResNet", "Zagoruyko & Komodakis, 2016")
TABLE2 = (
    Table2Row("nin", "Network in Network", "Lin et al., 2013", "", "", 8.81, 35.67),
    Table2Row("all-cnn", "All-CNN", "Springenberg et al., 2014", "", "", 7.25, 33.71),
    Table2Row("dsn", "Deeply-Supervised Net", "Lee et al., 2015", "", "", 7.97, 34.57),
    Table2Row("fitnet", "FitNet", "Romero et al., 2014", "", "", 8.39, 35.04),
    Table2Row("highway", "Highway Networks", "Srivastava et al., 2015", "", "", 7.72, 32.39),
    Table2Row("elu", "Exponential Linear Units", "Clevert et al., 2015", "", "", 6.55, 24.28),
    Table2Row("resnet-110", "ResNet", "He et al., 2016", "110", "1.7M", 6.43, 25.16),
    Table2Row("resnet-1202", "ResNet", "He et al., 2016", "1202", "10.2M", 7.93, 27.82),
    Table2Row("resnet-110-stochastic-depth", *_STOCHASTIC_DEPTH, "110", "1.7M", 5.23, 24.58),
    Table2Row("resnet-1202-stochastic-depth", *_STOCHASTIC_DEPTH, "1202", "10.2M", 4.91, None),
    Table2Row("shake-shake-26-2x96d", "Shake-Shake Regularization", "Gastaldi, 2017", "26", "26.2M", 2.86, None),
    Table2Row("shake-shake-29-2x4x64d", "Shake-Shake Regularization", "Gastaldi, 2017", "29", "34.4M", None, 15.85),
    Table2Row("densenet-bc-190-40", "DenseNet", "Huang et al., 2016", "190-40", "25.6M", 3.46, 17.18),
    Table2Row("densenet-bc-190-40-srs", "DN-SRS", "ours", "190-40", "25.6M", None, 15.63),
    Table2Row("wide-resnet-40-4", *_WIDE_RESNET, "40-4", "8.9M", 4.53, 21.18),
    Table2Row("wide-resnet-16-8", *_WIDE_RESNET, "16-8", "11.0M", 4.27, 20.43),
    Table2Row("wide-resnet-28-10", *_WIDE_RESNET, "28-10", "36.5M", 4.00, 19.25),
    Table2Row("wide-resnet-28-10-srs", "Wide ResNet with SRS", "ours", "28-10", "36.5M", 4.18, 19.05),
    Table2Row("wrn-28-10", "WRN", "ours", "28-10", "36.5M", 4.37, 19.42),
    Table2Row("wrn-28-10-srs", "WRN-SRS", "ours", "28-10", "36.5M", 4.06, 12.34),
    Table2Row("wrn-70-10", "WRN-70", "ours", "70-10", "106.4M", 4.49, 19.72),
    Table2Row("wrn-70-10-srs", "WRN-70-SRS", "ours", "70-10", "106.4M", 4.36, 10.10),
)

_B128, _B64 = "table3/wrn-b128-60-120-160", "table3/wrn-b64-60-120-160"
_LONG, _LONG_SRS = "table3/wrn-b64-120-150-175", "table3/wrn-srs-b64-120-150-175"
TABLE3 = (
    Table3Row(_B128, "WRN", 128, (60, 120, 160), 0.2, 18.38),
    Table3Row(_B64, "WRN", 64, (60, 120, 160), 0.2, 18.47),
    Table3Row(_LONG, "WRN", 64, (120, 150, 175), 0.1, 19.42),
    Table3Row(_LONG_SRS, "WRN-SRS", 64, (120, 150, 175), 0.1, 12.34),
)
#: The rows that the others are compared with: the same network and schedule without SRS.
TABLE3_REFERENCE, TABLE2_REFERENCE = _LONG, "wrn-28-10"

_FIGURE2 = (("wrn", "60-120-160"), ("wrn", "120-150-175"), ("wrn-srs", "120-150-175"))
FIGURE2 = Figure(
    "figure2",
    "Figure 2: WRN and WRN-SRS",
    tuple((f"figure2/{method}-{decays}", f"{method.upper()} {decays}") for method, decays in _FIGURE2),
)
_FIGURE3 = ("60-120-160", "90-135-168", "120-150-175", "150-175-190")
FIGURE3 = Figure(
    "figure3",
    "Figure 3: WRN-SRS with different learning-rate schedules",
    tuple((f"figure3/srs-{decays}", f"WRN-SRS {decays}") for decays in _FIGURE3),
)
_EARLY = "figure3/srs-60-120-160"
#: "About 23 %", the best error after a first decay at epoch 60 (section 3.2); no other line of a figure has a number.
FIGURE3_ERRORS = {_EARLY: 23.0}

_METHODS = {row.name: row.method for row in TABLE2}
CLAIMS = (
    Claim(_LONG_SRS, _LONG, "WRN-SRS", "WRN with the same schedule"),
    Claim(_LONG_SRS, _B64, "WRN-SRS", "WRN with its own schedule"),
    Claim(_LONG, _B64, "WRN with the long initial learning rate", "WRN with its own schedule"),
    Claim(_B64, _B128, "WRN with batches of 64", "WRN with batches of 128"),
    Claim(_EARLY, _LONG_SRS, "WRN-SRS with its first decay at 60", "WRN-SRS with its first decay at 120"),
    *(
        Claim(f"table2/{name}-srs/{data.name}", f"table2/{name}/{data.name}", _METHODS[f"{name}-srs"], _METHODS[name])
        for data in TABLE1
        for name in ("wrn-28-10", "wide-resnet-28-10", "wrn-70-10", "densenet-bc-190-40")
    ),
)


def published_error(experiment: str) -> float | None:
    """Return the test error that the paper gives for an experiment, or None.

    Example:
        >>> published_error("table2/wrn-70-10-srs/cifar100"), published_error("figure2/wrn-60-120-160")
        (10.1, None)
    """
    errors: dict[str, float | None] = {row.name: row.error for row in TABLE3}
    errors |= FIGURE3_ERRORS
    for row in TABLE2:
        errors |= {f"table2/{row.name}/cifar10": row.cifar10, f"table2/{row.name}/cifar100": row.cifar100}
    return errors.get(experiment)
