"""What a failed test's report says of the namespace that it used."""

from typing import TYPE_CHECKING

from lastcall.errors import LastcallError
from lastcall.kube.api import StatusError
from lastcall.kube.client import ConnectionLost
from lastcall.records.quoting import log_line

if TYPE_CHECKING:
    from lastcall.testing.blocking import Namespace


def sections(namespace: "Namespace") -> list[tuple[str, str]]:
    """(heading, text): how Pods ended that the test deleted, then what there is now."""
    found = [(log_line(f"lastcall: {ending}"), ending.text) for ending in namespace.endings]
    try:
        found.append((f"lastcall: namespace {namespace.namespace}", namespace.dump()))
    except (LastcallError, StatusError, ConnectionLost) as error:
        found.append((f"lastcall: namespace {namespace.namespace}", log_line(f"not available: {error}")))
    return found
