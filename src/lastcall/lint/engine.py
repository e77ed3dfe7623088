"""All rules over all objects, and what of their patches holds. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from lastcall.kube.api import resource_for
from lastcall.lint.application import Application
from lastcall.lint.catalogue.rule import SEVERITIES
from lastcall.lint.patching import patched
from lastcall.lint.rules import (
    api,
    budgets,
    dependencies,
    endings,
    hooks,
    hosts,
    jobs,
    limits,
    mounts,
    peers,
    probes,
    programs,
    references,
    services,
    starts,
    traps,
    updates,
    users,
    webhooks,
)
from lastcall.lint.subject import Finding, NotChecked, NotHere, Subject
from lastcall.manifests import refusals

FAMILIES = (
    api,
    services,
    hosts,
    references,
    mounts,
    budgets,
    updates,
    limits,
    endings,
    traps,
    hooks,
    starts,
    programs,
    probes,
    dependencies,
    peers,
    jobs,
    users,
    webhooks,
)


class Report(NamedTuple):
    """`not_here`: what the objects refer to and these manifests do not hold, so that it was not checked."""

    findings: tuple[Finding, ...]
    not_here: tuple[NotHere, ...]
    not_checked: tuple[NotChecked, ...] = ()


def lint(subjects: Sequence[Subject], *, fresh: bool = False, valid: bool = False) -> Report:
    """Return everything that is wrong, the worst of each object first. `fresh`: what is not in these manifests is not
    in the cluster either, as in that of `lastcall run`. `valid`: each object is known to be in order for itself."""
    found: list[Finding] = []
    for subject in () if valid else subjects:
        if subject.resource is not None:
            found += api.refused(subject)
    app = Application(subjects, fresh=fresh)
    for family in FAMILIES:
        found += family.findings(app)
    order = {id(subject): index for index, subject in enumerate(subjects)}
    once = {(each.rule, id(each.subject), each.path, each.message): each for each in found}
    checked = [checked_patch(each) for each in once.values()]
    checked.sort(key=lambda each: (order[id(each.subject)], SEVERITIES.index(each.severity)))
    wrong = {id(each.subject) for each in checked if each.rule == "unknownApiVersion"}
    not_checked = tuple(each for each in app.not_checked if id(each.subject) not in wrong)
    return Report(tuple(checked), app.not_here, not_checked)


def checked_patch(finding: Finding) -> Finding:
    """Return the finding, without its patch if that does not fit or the API server would refuse the patched object.

    A refusal counts if its reason is another one than before.
    """
    if not finding.patch:
        return finding
    subject = finding.subject
    new = patched(subject.raw, finding.patch)
    if new is None:
        return finding._replace(patch=(), automatic=False)
    resource = subject.resource
    if finding.rule == "unknownApiVersion":
        resource = resource_for(str(new.get("apiVersion")), str(new.get("kind")))
    if resource is None or set(refusals(new, resource)) - set(refusals(subject.raw, resource)):
        return finding._replace(patch=(), automatic=False)
    return finding
