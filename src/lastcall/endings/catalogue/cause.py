"""The shape of an entry of the catalogue. Data only."""

from collections.abc import Mapping
from dataclasses import field

from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that goes wrong (or is worth knowing), by its id in the catalogue.

    `title` says it in general, as a sentence, and `remedy` what to do about it ("" where there is nothing to do):
    documents and linters use them. `texts` and `fixes` are what is said of one Pod, by variant ("" is the usual
    one), with `$name` for each fact (string.Template). `lint` are the ids of `lastcall lint`'s rules that predict it.
    """

    title: str
    remedy: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    fixes: Mapping[str, str] = field(default_factory=dict)
    lint: tuple[str, ...] = ()
