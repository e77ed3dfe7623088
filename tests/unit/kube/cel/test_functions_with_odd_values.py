"""Whatever values a function is given, it answers or fails with an error of CEL."""

import itertools
import random
from collections.abc import Iterator

import pytest

from lastcall.kube.cel.environment import Environment
from lastcall.kube.cel.libraries import cidr, ip, quantity, semver, url
from lastcall.kube.cel.libraries.authz import Decision
from lastcall.kube.cel.libraries.every import KUBERNETES
from lastcall.kube.cel.libraries.format import NAMED
from lastcall.kube.cel.libraries.library import merged
from lastcall.kube.cel.types import DYN
from lastcall.kube.cel.values import (
    NONE,
    BoolKey,
    CostExceeded,
    Duration,
    EvaluationError,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
)

VALUES: list[object] = [
    *(None, True, False, 0, -1, 2**63 - 1, -(2**63), Uint(3), Uint(2**64 - 1)),
    *(0.0, 1.5, float("nan"), float("inf"), -1e300),
    *("", "a", "1h", "2020-01-01T00:00:00Z", "[", "%s%d", "\ud800", "é%", "+05:00", "9" * 23, "1_0", b"", b"\xff"),
    *([], [1], ["a"], [1, "a", None], [[1]], [float("nan")], [Optional(1), NONE], {}, {"a": 1}, {1: "x"}),
    *({BoolKey(True): 1}, Timestamp(0), Duration(2**63 - 1), TypeValue("int"), Optional(1), NONE, Optional(None)),
    *(ip.read("::1"), cidr.read("10.0.0.0/8"), quantity.read("1"), semver.read("1.2.3"), url.read("https://a/b")),
    *(NAMED["uuid"], Decision(True)),
]
OTHERS = [
    ("a.map(x, x)", 1),
    ("a.all(x, x == b)", 2),
    ("a.exists(x, y, x == y)", 1),
    ("a.transformMap(k, v, v)", 1),
    ("a.transformMapEntry(k, v, {v: k})", 1),
    ("a.sortBy(x, x)", 1),
    ("a.optMap(x, x)", 1),
    ("[?a]", 1),
    ("{?a: b}", 2),
    ("a.?foo", 1),
    ("has(a.foo)", 1),
    ("'%s %d %f %e %x %b %o'.format(a)", 1),
    ("'%s'.format([a])", 1),
]
WRITTEN = {"_?_:_": "a ? b : c", "_[_]": "a[b]", "_[?_]": "a[?b]", "@in": "a in b", "!_": "!a", "-_": "-a"}


def expressions() -> Iterator[tuple[str, int]]:
    """A call of each function with as many variables as it has arguments."""
    for name, function in merged(KUBERNETES).items():
        for overload in function.overloads:
            arguments = "abcd"[: len(overload.arguments)]
            if name in WRITTEN:
                yield WRITTEN[name], len(arguments)
            elif name.startswith("_") and name != "_?._":
                yield f"a {name.strip('_')} b", 2
            elif name[0].isalpha() and "@" not in name:
                call = f"{arguments[0]}.{name}" if overload.member else name
                yield f"{call}({', '.join(arguments[overload.member :])})", len(arguments)
    yield from OTHERS


@pytest.mark.parametrize(("expression", "count"), sorted(set(expressions())))
def test_a_function_answers_or_fails_with_an_error_of_the_language(expression: str, count: int) -> None:
    program = Environment(dict.fromkeys("abcd", DYN)).compile(expression)
    source = random.Random(expression)
    chosen = itertools.product(VALUES) if count == 1 else (source.choices(VALUES, k=count) for _ in range(100))
    for values in chosen:
        try:
            outcome = program.run(dict(zip("abcd", values, strict=False)), limit=100_000)
        except (EvaluationError, CostExceeded):
            continue
        assert outcome.cost <= 100_000
