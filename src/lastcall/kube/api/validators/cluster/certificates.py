"""CertificateSigningRequests.

Source: pkg/apis/certificates/validation/validation.go, pkg/apis/certificates/helpers.go.
"""

import base64
import binascii
from collections.abc import Sequence

from lastcall.kube.api.field import FieldError, duplicate, each, forbidden, go_quote, invalid, not_supported, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1123_label, is_dns1123_subdomain
from lastcall.kube.api.validators.kind_rules import KindRules

LEGACY = "kubernetes.io/legacy-unknown"
USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_APPROVAL = ("Approved", "Denied")
_TRUE_ONLY = (*_APPROVAL, "Failed")
_STATUSES = ("False", "True", "Unknown")
LEAST_SECONDS = 600
_PEM_KINDS = (b"CERTIFICATE REQUEST", b"NEW CERTIFICATE REQUEST")


def any_name(name: str) -> list[str]:
    """Accept any name of a request."""
    return []


def validate(request: Object) -> list[FieldError]:
    """Check a new request."""
    return _validate(request, None)


def _validate(request: Object, old: Object | None) -> list[FieldError]:
    spec = request.get("spec") or {}
    errors: list[FieldError] = []
    if old is None and (problem := _problem_of(spec.get("request") or "")):
        errors.append(invalid("spec.request", spec.get("request") or None, problem))
    usages = spec.get("usages") or []
    if not usages:
        errors.append(required("spec.usages"))
    path = "spec.usages[{}]"
    errors += [not_supported(path.format(n), use, USAGES) for n, use in enumerate(usages) if use not in USAGES]
    errors += [duplicate(path.format(n), use) for n, use in enumerate(usages) if use in usages[:n]]
    signer = spec.get("signerName") or ""
    if signer == LEGACY and old is None:
        errors.append(invalid("spec.signerName", signer, "the legacy signerName is not allowed via this API version"))
    else:
        errors += signer_name(signer, "spec.signerName")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < LEAST_SECONDS:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", seconds, why))
    errors += _conditions(_of(request))
    before = None if old is None else (old.get("status") or {}).get("certificate")
    certificate = (request.get("status") or {}).get("certificate")
    if certificate and certificate != before and (problem := _certificate_problem(certificate)):
        errors.append(invalid("status.certificate", "<certificate data>", problem))
    return errors


def _of(request: Object) -> list[Object]:
    found: list[Object] = (request.get("status") or {}).get("conditions") or []
    return found


def _problem_of(encoded: str) -> str:
    # late: cryptography is imported by the first request for a certificate
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    pem = _decoded(encoded)
    if not any(b"-----BEGIN %b-----" % kind in pem and b"-----END %b-----" % kind in pem for kind in _PEM_KINDS):
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        found = x509.load_pem_x509_csr(pem)
        valid = found.is_signature_valid
    except (ValueError, TypeError, InvalidSignature):
        return "asn1: structure error: malformed certificate request"
    return "" if valid else "x509: signature verification failed"


def _certificate_problem(encoded: str) -> str:
    # late: cryptography is imported by the first request for a certificate
    from cryptography import x509

    pem = _decoded(encoded)
    if b"-----BEGIN " not in pem:
        return "must contain at least one CERTIFICATE PEM block"
    for line in pem.split(b"\n"):
        kind = line.removeprefix(b"-----BEGIN ").removesuffix(b"-----")
        if line.startswith(b"-----BEGIN ") and kind != b"CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{kind.decode(errors="replace")}"'
    try:
        x509.load_pem_x509_certificates(pem)
    except ValueError:
        return "x509: malformed certificate"
    return ""


def _decoded(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded)
    except binascii.Error:
        return b""


def signer_name(name: str, path: str) -> list[FieldError]:
    """Check the name of a signer. (`ValidateSignerName`)"""
    if not name:
        return [required(path)]
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, why)]
    errors: list[FieldError] = []
    for label in domain.split("."):
        errors += each(path, domain, (f"validating label {go_quote(label)}: {why}" for why in is_dns1123_label(label)))
    if len(domain.split(".")) < 2:
        errors.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    if not rest:
        return [*errors, invalid(path, rest, "must not be empty")]
    for part in rest.split("."):
        problems = is_dns1123_subdomain(part)
        errors += each(path, rest, (f"validating label {go_quote(part)}: {problem}" for problem in problems))
    return errors


def _conditions(conditions: Sequence[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        path, kind, status = f"status.conditions[{index}]", condition.get("type") or "", condition.get("status") or ""
        if not kind:
            errors.append(required(f"{path}.type"))
        allowed = ("True",) if kind in _TRUE_ONLY else _STATUSES
        if not status:
            errors.append(required(f"{path}.status"))
        elif status not in allowed:
            errors.append(not_supported(f"{path}.status", status, allowed))
        if kind in _APPROVAL and {*_APPROVAL} <= {*seen, kind}:
            why = "Approved and Denied conditions are mutually exclusive"
            errors.append(invalid("status.conditions", kind, why))
        if kind in seen:
            errors.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
    return errors


def update(new: Object, old: Object) -> list[FieldError]:
    return _update(new, old)


def update_status(new: Object, old: Object) -> list[FieldError]:
    return _update(new, old, certificate=True)


def update_approval(new: Object, old: Object) -> list[FieldError]:
    return _update(new, old, approval=True)


def _update(new: Object, old: Object, *, certificate: bool = False, approval: bool = False) -> list[FieldError]:
    errors = _validate(new, old)
    path = "status.conditions"
    for kind in _TRUE_ONLY:
        had, have = ([each_one for each_one in _of(obj) if each_one.get("type") == kind] for obj in (old, new))
        if len(have) < len(had):
            errors.append(forbidden(path, f'updates may not remove a condition of type "{kind}"'))
        elif approval or kind not in _APPROVAL:
            continue
        elif len(have) > len(had):
            errors.append(forbidden(path, f'updates may not add a condition of type "{kind}"'))
        elif have != had:
            errors.append(forbidden(path, f'updates may not modify a condition of type "{kind}"'))
    had_one, has_one = ((obj.get("status") or {}).get("certificate") or "" for obj in (old, new))
    if has_one != had_one and not certificate:
        errors.append(forbidden("status.certificate", "updates may not set certificate content"))
    elif has_one != had_one and had_one:
        errors.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
    return errors


RULES = {
    "certificatesigningrequests": KindRules(
        any_name,
        create=validate,
        update=update,
        subresources=(("status", update_status), ("approval", update_approval)),
    ),
}
"""By plural."""
