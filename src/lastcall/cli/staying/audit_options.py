"""The options of an audit log, read and checked: `up --audit-log`."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lastcall.cli.options import Whole, audit_log_option
from lastcall.errors import UserError

if TYPE_CHECKING:
    from lastcall.kube.apiserver import AuditOptions

F = TypeVar("F", bound=Callable[..., Any])

MOST_POLICY_BYTES = 1 << 20
_PRIVATE = ("/dev/", "/proc/", "/sys/", "/lastcall/")
"""Directories of which a cluster has its own."""

_OPTIONS = [
    audit_log_option(
        "Append each request to the API server to FILE, for its owner alone, as kube-apiserver's audit log has it "
        "(audit.k8s.io/v1). lastcall trace --audit-log reads it.",
    ),
    click.option(
        "--audit-policy",
        metavar="FILE",
        default="",
        help="Policy (audit.k8s.io/v1) of which requests to log, and how much of each.  [default: Metadata of all]",
    ),
    click.option(
        "--audit-log-maxsize",
        type=Whole(1, 1 << 20, "MiB"),
        metavar="MIB",
        default=100,
        show_default=True,
        help="Size at which the audit log becomes FILE.1, and a new one begins.",
    ),
    click.option(
        "--audit-log-maxbackup",
        type=Whole(0, 1000, "files"),
        metavar="N",
        default=3,
        show_default=True,
        help="How many of these files stay; the oldest is removed.",
    ),
]


def audit_options(command: F) -> F:
    """Add the options; `asked_audit` reads them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def asked_audit(options: dict[str, Any], warn: Callable[[str], None]) -> "AuditOptions | None":
    """Take the options out of `options`, and open the log once. Raises click.UsageError, UserError."""
    log, policy = options.pop("audit_log"), options.pop("audit_policy")
    max_size, backups = options.pop("audit_log_maxsize"), options.pop("audit_log_maxbackup")
    if not log:
        if policy:
            raise click.UsageError("--audit-policy says what --audit-log has: give that, too")
        return None
    # late: few ask for it
    from lastcall.kube.apiserver import AUDIT_EVERYTHING, AuditOptions, open_log

    path = os.path.abspath(log)
    if path.startswith(_PRIVATE):
        raise UserError(f"--audit-log {log}: a cluster has a directory of its own there; fix: name another directory")
    rules = AUDIT_EVERYTHING
    if policy:
        rules = _policy(policy)
        for warning in rules.warnings:
            warn(f"--audit-policy {policy}: {warning}")
    try:
        os.close(open_log(path))
    except OSError as error:
        raise UserError(f"--audit-log {log}: {error.strerror or error}; fix: name a file that you may write") from None
    return AuditOptions(path, rules, max_size << 20, backups)


def _policy(name: str) -> Any:
    # late: few ask for it
    from lastcall.kube.apiserver import PolicyError, parse_policy
    from lastcall.manifests import YAMLProblem, read_documents
    from lastcall.world.files import read_regular

    try:
        documents = list(read_documents(read_regular(name, MOST_POLICY_BYTES).decode("utf-8-sig")))
        if len(documents) != 1:
            raise PolicyError(f"it has {len(documents)} documents; fix: write one Policy")
        return parse_policy(documents[0].value)
    except OSError as error:
        raise UserError(
            f"--audit-policy {name}: {error.strerror or error}; fix: name a file that you may read"
        ) from None
    except YAMLProblem as error:
        raise UserError(f"--audit-policy {name}:{error.line}: {error}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"--audit-policy {name}: not a text in UTF-8: {error.reason}") from None
    except PolicyError as error:
        raise UserError(f"--audit-policy {name}: {error}") from None
