"""The report: one self-contained page, and the same as Markdown, made from run folders alone."""

from replenish.lab.report.making import Report, make_report, write_report
from replenish.lab.report.reading import RunRecord, read_runs

__all__ = ["Report", "RunRecord", "make_report", "read_runs", "write_report"]
