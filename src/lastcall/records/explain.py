"""The Kubernetes rule behind a step, in plain words."""

# check: pure

from lastcall.records.record import Record
from lastcall.records.rules import explanation
from lastcall.records.said import Said
from lastcall.records.words import meaning


def explain(rule: str) -> str:
    """Return what the rule says, in one or two sentences; "" for a string that is not a rule."""
    text = explanation(rule)
    return Said(text, {}) if text else ""


def explain_record(record: Record) -> str:
    """Return what a record's rule says; for one that follows no rule of Kubernetes, what its kind means."""
    return explain(record.rule) if record.rule else meaning(record.kind)
