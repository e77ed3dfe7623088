"""/healthz, /livez and /readyz. The server answers only once it has started, so every check is passed.

Source: apiserver pkg/server/healthz/healthz.go.
"""

from collections.abc import Mapping

from multidict import MultiMapping

from lastcall.world.dataclass import dataclass

CHECKS = ("ping", "log", "store", "poststarthook/bootstrap-namespaces")

ENDPOINTS = ("healthz", "livez", "readyz")


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    status: int
    text: str


def is_health(path: str) -> bool:
    endpoint, _, check = path.removeprefix("/").partition("/")
    return endpoint in ENDPOINTS and (not check or check in CHECKS)


def health(path: str, query: Mapping[str, str]) -> HealthAnswer | None:
    """Return the answer of a health endpoint; None for another path. `?verbose` lists, `?exclude=name` leaves out."""
    endpoint, _, check = path.removeprefix("/").partition("/")
    if endpoint not in ENDPOINTS:
        return None
    if check:
        return HealthAnswer(200, "ok") if check in CHECKS else HealthAnswer(404, "404 page not found\n")
    if "verbose" not in query:
        return HealthAnswer(200, "ok")
    excluded = query.getall("exclude", []) if isinstance(query, MultiMapping) else []
    lines = [f"[+]{name} excluded: ok" if name in excluded else f"[+]{name} ok" for name in CHECKS]
    return HealthAnswer(200, "\n".join([*lines, f"{endpoint} check passed", ""]))
