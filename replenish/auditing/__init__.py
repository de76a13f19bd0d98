"""What a loader really does, question by question: `replenish.audit`, and the judgement of recorded passes."""

from replenish.auditing.audit import audit as audit
from replenish.auditing.findings import Audit as Audit
from replenish.auditing.findings import Finding as Finding
