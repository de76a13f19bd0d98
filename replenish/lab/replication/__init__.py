"""The replication study judged: its plan as data, the records, the rules of docs/study.md, and the page they make."""

from replenish.lab.replication.claims import CLAIMS, Claim
from replenish.lab.replication.evidence import Evidence, read_evidence
from replenish.lab.replication.judgement import Judged, Judgement, judge_study
from replenish.lab.replication.plan import ARMS, COMPARISONS, MARGIN, PRIMARY, SECONDARY

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
