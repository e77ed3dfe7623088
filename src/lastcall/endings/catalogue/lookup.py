"""The door to the catalogue: `said` and `fix` answer the sentence of an id, with its facts filled in. Pure."""

# check: pure

from collections.abc import Mapping

from lastcall.endings.catalogue.cause import Cause
from lastcall.endings.catalogue.containers import CONTAINERS
from lastcall.endings.catalogue.pods import PODS
from lastcall.endings.catalogue.requests import REQUESTS
from lastcall.endings.catalogue.restarts import RESTARTS
from lastcall.endings.catalogue.signals import SIGNALS
from lastcall.endings.catalogue.simulation import SIMULATION
from lastcall.endings.catalogue.waiting import WAITING
from lastcall.records.said import Said

CATALOGUE: Mapping[str, Cause] = {**PODS, **CONTAINERS, **SIGNALS, **RESTARTS, **REQUESTS, **WAITING, **SIMULATION}
"""Every cause by its id. Ids are part of the JSON: they stay."""


def said(id_: str, variant: str = "", /, **facts: object) -> Said:
    """Return what is said of a finding. KeyError for an id, a variant or a fact that is missing: a bug."""
    return Said(CATALOGUE[id_].texts[variant], facts)


def fix(id_: str, variant: str = "", /, **facts: object) -> Said:
    """Return what to do about it. KeyError as in `said`."""
    return Said(CATALOGUE[id_].fixes[variant], facts)
