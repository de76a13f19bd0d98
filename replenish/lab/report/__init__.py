"""The report: one self-contained page and the same as Markdown, made only from run folders."""

from replenish.lab.report.grouping import by_experiment
from replenish.lab.report.report import experiments_section, report_page, write_report
from replenish.lab.runs import RunRecord, read_runs

__all__ = [
    "RunRecord",
    "by_experiment",
    "experiments_section",
    "read_runs",
    "report_page",
    "write_report",
]
