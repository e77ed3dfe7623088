"""Rows about single records of a Pod that are worth a sentence of their own. Pure."""

# check: pure

import re
from collections.abc import Callable
from typing import Any

from lastcall.endings.catalogue.lookup import CATALOGUE, fix, said
from lastcall.endings.facts.finalizers import claim_held
from lastcall.endings.findings.subjects import RecordSubject
from lastcall.endings.findings.table import Fact, Row
from lastcall.endings.story import Finding, Severity
from lastcall.records import kinds
from lastcall.records.said import joined
from lastcall.records.signal_names import signal_name


def _is(kind: str, test: Callable[[RecordSubject], bool] = lambda s: True) -> Fact[RecordSubject]:
    return Fact("what was recorded", lambda s: s.entry.record.kind == kind and test(s), (kind,))


_SUBSTITUTED = _is(kinds.IMAGE_SUBSTITUTED)
_DIED = _is(kinds.PROCESS_DIED)
_BUSY = _is(kinds.VOLUME_BUSY)
_CLAIM = _is(kinds.CLAIM_HELD)
_DETACH_FAILED = _is(kinds.NETWORK_DETACHED, lambda s: bool(s.entry.facts_as(kinds.NETWORK_DETACHED).get("error")))
_SHORTENED = _is(kinds.GRACE_SHORTENED, lambda s: s.entry.at >= 0)


def _image_substituted(s: RecordSubject) -> Finding:
    facts = s.entry.facts_as(kinds.IMAGE_SUBSTITUTED)
    text = said("imageSubstituted", image=facts.get("image"), substitute=facts.get("substitute"))
    return Finding("imageSubstituted", "warning", text, s.entry.record.container)


def _process_died(s: RecordSubject) -> Finding:
    facts = s.entry.facts_as(kinds.PROCESS_DIED)
    role, how = str(facts.get("role")), signal_name(facts.get("signal"))
    died = said("processDied", "exited", code=facts.get("exitCode"))
    if how:
        died = said("processDied", "killed", signal=how)
    if "hung" in facts:
        died = said("processDied", "hung", seconds=f"{facts['hung']['seconds']:.0f}")
    restarted = facts.get("restartsIn") is not None
    after = "" if restarted else said("processDied", "unknown")
    if restarted and role in CATALOGUE["processDied"].texts:
        after = said("processDied", role)
    severity: Severity = "warning" if restarted and role != "shim-1" else "problem"
    text = said("processDied", role=role, died=died, at=f"{s.entry.at:.2f}", after=after)
    return Finding("processDied", severity, text)


_FIELDS_OF_A_HOLDER: dict[str, Any] = dict.fromkeys(("path", "name", "pid", "how"))


def _volume_busy(s: RecordSubject) -> Finding:
    facts = s.entry.facts_as(kinds.VOLUME_BUSY)
    holders = [
        said("volumeBusy", "mount" if each.get("how") == "mount" else "process", **_FIELDS_OF_A_HOLDER | each)
        for each in facts.get("holders") or ()
    ]
    held = joined(holders[:4], ", ") or said("volumeBusy", "nobody")
    more = len(holders) - 4 + int(facts.get("more") or 0)
    if more > 0:
        held = said("volumeBusy", "more", holders=held, more=more)
    text = said("volumeBusy", volume=facts.get("volume"), error=facts.get("error"), holders=held)
    return Finding("volumeBusy", "warning", text, advice=fix("volumeBusy"))


def _claim_held(s: RecordSubject) -> Finding:
    return Finding("claimHeldByPod", "info", claim_held(s.entry.facts_as(kinds.CLAIM_HELD), s.entry.at))


def _detach_failed(s: RecordSubject) -> Finding:
    facts = s.entry.facts_as(kinds.NETWORK_DETACHED)
    text = said("networkTeardownFailed", ip=facts.get("ip"), error=facts.get("error"))
    return Finding("networkTeardownFailed", "warning", text, advice=fix("networkTeardownFailed"))


def _shortened(s: RecordSubject) -> Finding:
    facts = s.entry.facts_as(kinds.GRACE_SHORTENED)
    return Finding("graceShortened", "info", said("graceShortened", before=facts.get("from"), after=facts.get("to")))


_WEBHOOK = re.compile(r'(?:admission webhook|failed calling webhook) "([^"]+)"')


def _accepted_later(s: RecordSubject) -> bool:
    those = (entry for entry in s.ending.entries if entry.record.kind == kinds.DELETE_ACCEPTED)
    return any(entry.at >= s.entry.at for entry in those)


_REFUSED = _is(kinds.DELETE_REFUSED, lambda s: not _accepted_later(s))


def _delete_refused(s: RecordSubject) -> Finding:
    """Whoever deletes it tries again and again, as the garbage collector does: nobody shows the API server's answer."""
    facts = s.entry.facts_as(kinds.DELETE_REFUSED)
    text = said("deleteRefused", user=facts.get("user"), message=facts.get("message"))
    webhook = _WEBHOOK.search(str(facts.get("message")))
    advice = fix("deleteRefused", "webhook", webhook=webhook[1]) if webhook else fix("deleteRefused")
    return Finding("deleteRefused", "problem", text, advice=advice)


ROWS = (
    Row("deleteRefused", (_REFUSED,), _delete_refused),
    Row("imageSubstituted", (_SUBSTITUTED,), _image_substituted),
    Row("processDied", (_DIED,), _process_died),
    Row("volumeBusy", (_BUSY,), _volume_busy),
    Row("claimHeldByPod", (_CLAIM,), _claim_held),
    Row("networkTeardownFailed", (_DETACH_FAILED,), _detach_failed),
    Row("graceShortened", (_SHORTENED,), _shortened),
)
