"""What a loader really does, asked question by question: `replenish.audit`."""

from replenish.auditing.audit import audit as audit
from replenish.auditing.findings import Audit as Audit
from replenish.auditing.findings import Finding as Finding
