"""The audit log: what of a request is written down (`policy`, `events`), and where it goes (`log`, `auditor`)."""
