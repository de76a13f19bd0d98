"""The report: one self-contained page, and the same as Markdown, made from run folders alone."""

from replenish.lab.report.grouping import by_experiment, by_recipe
from replenish.lab.report.report import report_page, scale_section, write_report
from replenish.lab.report.tables import short_table3
from replenish.lab.runs import RunRecord, read_runs

__all__ = [
    "RunRecord",
    "by_experiment",
    "by_recipe",
    "read_runs",
    "report_page",
    "scale_section",
    "short_table3",
    "write_report",
]
