"""The replication study: its plan as data, its records, the rules of docs/study.md, and its page of results."""

from study.replication.claims import CLAIMS, Claim
from study.replication.evidence import Evidence, read_evidence
from study.replication.judgement import Judged, Judgement, judge_study
from study.replication.plan import ARMS, COMPARISONS, MARGIN, PRIMARY, SECONDARY

__all__ = [
    "ARMS",
    "CLAIMS",
    "COMPARISONS",
    "MARGIN",
    "PRIMARY",
    "SECONDARY",
    "Claim",
    "Evidence",
    "Judged",
    "Judgement",
    "judge_study",
    "read_evidence",
]
