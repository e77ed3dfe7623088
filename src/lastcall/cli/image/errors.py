"""What went wrong with an image, for a person: the error, and the fix where one is known."""

# check: reaches inside because images raise the errors of CRI

from collections.abc import Iterator
from contextlib import contextmanager

import click

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.sandbox.images import Reference


class BadInput(click.ClickException):
    """The user's; exit status 2."""

    exit_code = 2


@contextmanager
def report_errors(reference: Reference | None = None) -> Iterator[None]:
    """Turn errors of the image store and of pulls into exit status 1, a bad name into 2."""
    try:
        yield
    except RuntimeServiceError as error:
        kind = BadInput if error.reason == "InvalidImageName" else click.ClickException
        hint = way_out(reference, str(error), getattr(error, "status", 0)) if reference is not None else ""
        raise kind(f"{error}{hint and chr(10)}{hint}") from error


def way_out(reference: Reference, text: str, status: int) -> str:
    """Return what may help, "" when nothing is known."""
    registry = "" if reference.domain == "docker.io" else f" {reference.domain}"
    if status in (401, 403):
        return f"fix: check the name; `docker login{registry}` saves credentials for private images"
    if "no match for platform" in text:
        return "fix: --platform pulls the image of another platform, which does not run here"
    if status == 404:
        return f"fix: check the name; a private repository may need `docker login{registry}`"
    if status == 429:
        return f"fix: {reference.domain} limits pulls: wait, or raise the limit with `docker login{registry}`"
    if "no such host" in text or "i/o timeout" in text or "unreachable" in text:
        return (
            "fix: check the network and the proxy (HTTPS_PROXY); or run `docker save IMAGE -o FILE` on another "
            "machine, and `lastcall image import FILE` here"
        )
    if "failed to verify certificate" in text:
        return f"fix: put its CA certificate into /etc/docker/certs.d/{reference.domain}/ca.crt"
    return ""
