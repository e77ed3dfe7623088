"""Report what the manifests alone prove to be wrong, before `run` and `rollout` start a cluster."""

from collections.abc import Sequence

from lastcall.lint.engine import lint
from lastcall.lint.located import Located
from lastcall.lint.places import spot_of
from lastcall.lint.subject import Subject
from lastcall.manifests import Manifest


def certain_errors(manifests: Sequence[Manifest]) -> list[Located]:
    """Return errors of manifests that are valid each for itself, when they are all that a new cluster gets."""
    subjects = [Subject(each.obj, each.resource, each.place) for each in manifests]
    report = lint(subjects, fresh=True, valid=True)
    errors = (each for each in report.findings if (each.severity, each.certainty) == ("error", "certain"))
    return [Located(each, spot_of(each.subject.where, each.path)) for each in errors]
