"""Whether the line of a record is told in Japanese, and whole."""

import re
from string import Template

from lastcall.records import kinds
from lastcall.records.language import catalogue_of, translate
from lastcall.records.recalled import recalled
from lastcall.records.record import Record
from lastcall.records.said import Said
from lastcall.records.words import words_for

LETTERS = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")

SENTENCES = {
    kinds.DELETION_DECIDED: "why",
    kinds.GRACE_DECIDED: "why",
    kinds.KILLING: "message",
    kinds.NOT_SHOWN: "text",
    kinds.PRE_STOP_SKIPPED: "why",
}
"""Kind → the fact that is a sentence in English."""

AS_THEY_ARE = {
    "killing": "Kubernetes's message for containers that are all restarted is its own word",
    "FailedPostStartHook": "Kubernetes's message is the reason's name",
}
"""What stands there in place of a sentence, and why."""

MACHINE = {kinds.OUTPUT: "a program printed it"}
"""Kinds whose line has no word of lastcall."""


def missing(text: str) -> list[str]:
    """Templates in it that have words and no Japanese."""
    if not isinstance(text, Said):
        return []
    words = Template(text.template).template
    for name in text.facts:
        words = words.replace(f"${{{name}}}", "").replace(f"${name}", "")
    own = [text.template] if text.template not in catalogue_of("ja") and re.search("[A-Za-z]", words) else []
    return own + [each for fact in text.facts.values() if isinstance(fact, str) for each in missing(fact)]


def untold(record: Record) -> str:
    """What of its line is not told in Japanese; "" for nothing. A kind that is not lastcall's has no words."""
    text = words_for(record).text
    if not isinstance(text, Said):
        return "" if text == record.kind else f"{record.kind}: not a template: {text}"
    if templates := missing(text):
        return f"{record.kind}: no Japanese for {templates}"
    sentence = record.facts.get(SENTENCES.get(record.kind, ""))
    if sentence and sentence not in AS_THEY_ARE and not isinstance(recalled(sentence), Said):
        return f"{record.kind}: records/recalled.py does not know {sentence!r}"
    if not LETTERS.search(translate(text, "ja")) and record.kind not in MACHINE and sentence not in AS_THEY_ARE:
        return f"{record.kind}: {translate(text, 'ja')!r} has no Japanese"
    return ""
