"""Make text that remembers what it was made of, so that it can be translated. Pure."""

# check: pure
# check: reads facts because these are facts of a sentence, not of a record

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from string import Template
from typing import Any

Catalogue = Mapping[str, str]
"""English template → the same in another language, with the same `$names`."""

CUT = "$text… ($more more characters)"


class Said(str):
    """A sentence in English, with the template and the facts that it was made from.

    It is a str in every respect. A fact that is `Said` itself is translated, too.
    """

    __slots__ = ("facts", "template")
    template: str
    facts: Mapping[str, object]

    def __new__(cls, template: str, facts: Mapping[str, object]) -> Said:
        """KeyError for a fact that the template names and that is missing: a bug."""
        made = str.__new__(cls, _format(template) % facts)
        made.template, made.facts = template, facts
        return made

    def __reduce__(self) -> tuple[type[Said], tuple[str, Mapping[str, object]]]:
        """For copies: `dataclasses.asdict` makes some."""
        return Said, (self.template, self.facts)

    @staticmethod
    def names(template: str) -> tuple[str, ...]:
        """Return the facts that a template takes."""
        return tuple(Template(template).get_identifiers())


class _Beginning(Said):
    """The first `limit` characters of a text, in whatever language. `facts["text"]` is all of it."""

    __slots__ = ()

    def __new__(cls, template: str, facts: Mapping[str, object]) -> _Beginning:
        whole, limit = str(facts["text"]), int(str(facts["limit"]))
        made = str.__new__(cls, _format(template) % {"text": whole[:limit], "more": facts["more"]})
        made.template, made.facts = template, facts
        return made

    def __reduce__(self) -> tuple[type[Said], tuple[str, Mapping[str, object]]]:
        return _Beginning, (self.template, self.facts)


@lru_cache(maxsize=4096)
def _format(template: str) -> str:
    """The template for the operator `%`: ten times as fast as `Template.substitute`. ValueError for a lone `$`."""
    if not Template(template).is_valid():
        raise ValueError(f"not a template: {template!r}")

    def piece(found: object) -> str:
        name = found["named"] or found["braced"]  # type: ignore[index]  # a match
        return f"%({name})s" if name else "$"

    return Template.pattern.sub(piece, template.replace("%", "%%"))


def tell(template: str, /, **facts: object) -> Said:
    """Return a text that keeps its template and facts: `tell("$container ended", container="web")`."""
    return Said(template, facts)


def joined(parts: Iterable[str], between: str = " ") -> Said:
    """Return several texts after one another, each of which can still be translated; empty ones are left out."""
    first, *others = [part for part in parts if part] or [""]
    whole = Said("${part0}", {"part0": first})
    template = f"${{part0}}{between.replace('$', '$$')}${{part1}}"  # one, however many there are
    for each in others:
        whole = Said(template, {"part0": whole, "part1": each})
    return whole


def shown(text: str, show: Callable[[str], str]) -> str:
    """Return `text` with `show` applied to each of its facts, for example so that they are safe for a terminal."""
    if not isinstance(text, Said):
        return show(text)
    if isinstance(text, _Beginning):
        return beginning(shown(str_of(text.facts["text"]), show), int(str(text.facts["limit"])))
    return Said(text.template, {name: shown(str_of(fact), show) for name, fact in text.facts.items()})


def beginning(text: str, limit: int) -> str:
    """Return the first `limit` characters of a longer text, and how many more there are."""
    if len(text) <= limit:
        return text
    return _Beginning(CUT, {"text": text, "limit": limit, "more": len(text) - limit})


def in_language(text: str, catalogue: Catalogue) -> str:
    """Return the text in the catalogue's language.

    A template that the catalogue lacks stays as it is, and so does a plain str: it may be a name or a line of output.
    """
    if not isinstance(text, Said):
        return text
    template = catalogue.get(text.template, text.template)
    if isinstance(text, _Beginning):
        whole, limit = in_language(str_of(text.facts["text"]), catalogue), int(str(text.facts["limit"]))
        if len(whole) <= limit:
            return whole
        return _Beginning(template, {"text": whole, "limit": limit, "more": len(whole) - limit})
    facts = {name: in_language(str_of(fact), catalogue) for name, fact in text.facts.items()}
    return Said(template, facts)


def to_wire(text: str) -> Any:
    """Convert a text to JSON, for another process: a plain str stays as it is."""
    if not isinstance(text, Said):
        return text
    return {"template": text.template, "facts": {name: to_wire(str_of(fact)) for name, fact in text.facts.items()}}


def from_wire(wired: Any) -> str:
    """Convert what `to_wire` made to the text again."""
    if isinstance(wired, str):
        return wired
    facts = {name: from_wire(fact) for name, fact in wired["facts"].items()}
    return _Beginning(CUT, facts) if wired["template"] == CUT else Said(wired["template"], facts)


def str_of(fact: object) -> str:
    """Return a fact as a str, which keeps what it was made of."""
    return fact if isinstance(fact, str) else str(fact)


def fact_of(text: Said, name: str) -> str:
    """Return the fact at `$name`."""
    return str_of(dict(text.facts)[name])
