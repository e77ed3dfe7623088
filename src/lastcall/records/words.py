"""A record in words: one short line each, for the live timeline and the table of steps. Pure."""

# check: pure

from lastcall.records.definitions import (
    apiserver,
    client,
    controllers,
    endpointslice_controller,
    every_role,
    init,
    kube_proxy,
    kubelet_end,
    kubelet_start,
    runtime,
    witness,
)
from lastcall.records.quoting import is_plain, one_line
from lastcall.records.record import Record
from lastcall.records.said import Said, beginning, shown
from lastcall.records.sentences import DETAIL, Sentence, Words
from lastcall.records.text import LONGEST

KINDS: dict[str, Sentence] = {
    **client.SENTENCES,
    **apiserver.SENTENCES,
    **endpointslice_controller.SENTENCES,
    **kube_proxy.SENTENCES,
    **controllers.SENTENCES,
    **kubelet_start.SENTENCES,
    **kubelet_end.SENTENCES,
    **runtime.SENTENCES,
    **witness.SENTENCES,
    **init.SENTENCES,
    **every_role.SENTENCES,
}
"""Every kind: its words, its meaning, and its rules."""


def words_for(record: Record) -> Words:
    """Return the words for a record. Text from containers and manifests is made safe for a terminal."""
    sentence = KINDS.get(record.kind)
    words = sentence.words(record.facts) if sentence else Words(record.kind, DETAIL, "dim")
    if is_plain(words.text) and len(words.text) <= LONGEST:
        return words
    return Words(beginning(shown(words.text, one_line), LONGEST), words.level, words.style)


def meaning(kind: str) -> str:
    """Return what a kind of record means; "" for one that is not lastcall's."""
    sentence = KINDS.get(kind)
    return Said(sentence.meaning, {}) if sentence else ""
