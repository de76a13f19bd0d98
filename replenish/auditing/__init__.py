"""What a loader really does: `replenish.audit`, and the judgement of recorded passes."""

from replenish.auditing.audit import audit as audit
from replenish.auditing.judge import Audit as Audit
from replenish.measure.findings import Finding as Finding
