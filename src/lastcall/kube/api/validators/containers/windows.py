"""Windows options of a security context: no node here runs Windows, but errors are those of Kubernetes.

Source: pkg/apis/core/validation/validation.go (validateWindowsSecurityContextOptions, validateWindowsHostProcessPod).
"""

import re
from collections.abc import Iterable

from lastcall.kube.api.field import FieldError, each, invalid
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1123_subdomain

LONGEST_SPEC_KIB = 64
LONGEST_DOMAIN = 256
LONGEST_USER = 104
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NETBIOS = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9\-.]{0,14}")
_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NOT_IN_USERS = '"/\\:;|=,+*?<>@[]'


def windows_options(context: Object | None, path: str) -> list[FieldError]:
    options = (context or {}).get("windowsOptions") or {}
    at = f"{path}.windowsOptions"
    errors: list[FieldError] = []
    if (name := options.get("gmsaCredentialSpecName")) is not None:
        errors += each(f"{at}.gmsaCredentialSpecName", name, is_dns1123_subdomain(name))
    if (spec := options.get("gmsaCredentialSpec")) is not None:
        if not spec:
            why = "gmsaCredentialSpec cannot be an empty string"
            errors.append(invalid(f"{at}.gmsaCredentialSpec", spec, why))
        elif len(spec.encode()) > LONGEST_SPEC_KIB * 1024:
            why = f"gmsaCredentialSpec size must be under {LONGEST_SPEC_KIB} KiB"
            errors.append(invalid(f"{at}.gmsaCredentialSpec", spec, why))
    if (user := options.get("runAsUserName")) is not None:
        errors += each(f"{at}.runAsUserName", user, [f"runAsUserName{why}" for why in _user_name(user)])
    return errors


def _user_name(name: str) -> list[str]:
    """What is wrong with `DOMAIN\\USER` or `USER`."""
    if not name:
        return [" cannot be an empty string"]
    if _CONTROL.search(name):
        return [" cannot contain control characters"]
    parts = name.split("\\")
    if len(parts) > 2:
        return [" cannot contain more than one backslash"]
    found = []
    user = parts[-1]
    if len(parts) == 2:
        if len(parts[0]) >= LONGEST_DOMAIN:
            found.append(f"'s Domain length must be under {LONGEST_DOMAIN} characters")
        if not (_NETBIOS.fullmatch(parts[0]) or _DNS.fullmatch(parts[0])):
            found.append("'s Domain doesn't match the NetBios nor the DNS format")
    if not user:
        found.append("'s User cannot be empty")
    elif len(user) > LONGEST_USER:
        found.append(f"'s User length must not be longer than {LONGEST_USER} characters")
    if user and not user.strip(". "):
        found.append("'s User cannot contain only periods or spaces")
    if any(char in _NOT_IN_USERS for char in user):
        found.append(f"'s User cannot contain the following characters: {_NOT_IN_USERS}")
    return found


def host_process(spec: Object, containers: Iterable[tuple[str, Object]]) -> list[FieldError]:
    """Check what a Pod of processes of the host needs; `containers` come with their paths."""
    errors: list[FieldError] = []
    of_pod = _host_process(spec.get("securityContext"))
    count = of_host = 0
    for path, container in containers:
        count += 1
        own = _host_process(container.get("securityContext"))
        if own is not None and of_pod is not None and own is not of_pod:
            at = f"{path}.securityContext.windowsOptions.hostProcess"
            why = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
            errors.append(invalid(at, own, why))
        of_host += bool(of_pod if own is None else own)
    if not of_host:
        return errors
    if of_host != count:
        why = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        errors.append(invalid("spec", "", why))
    if not spec.get("hostNetwork"):
        why = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(invalid("spec.hostNetwork", False, why))
    return errors


def _host_process(context: Object | None) -> bool | None:
    said: bool | None = ((context or {}).get("windowsOptions") or {}).get("hostProcess")
    return said
