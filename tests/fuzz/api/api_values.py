"""Values by type: ordinary ones, the extreme ones of the type, and those of another type."""

import copy
import random
from typing import Any

from lastcall.kube.api.schema.types import Field

INTEGERS = (0, 1, -1, 2, 7, 100, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63 - 1, 2**63, -(2**63), 10**40)
WIDE = {"int32": 2**31, "int64": 2**63}
FLOATS = (0.5, 1.0, -0.0, 1e308, -1e-308, 5e-324)
TIMES = (
    "2026-01-02T03:04:05Z",
    "2026-01-02T03:04:05.123456Z",
    "2026-01-02T03:04:05.123456789+14:00",
    "2026-01-02t03:04:05z",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+05:00",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-05:00",
    "0000-00-00T00:00:00Z",
    "2024-02-30T00:00:00Z",
    "1969-12-31T23:59:60Z",
    "2030-01-01T00:00:01Z",
)
QUANTITIES = (
    "0",
    "1",
    "1m",
    "1n",
    "0.5",
    "1Ki",
    "-1Ki",
    "64Mi",
    "1E",
    "1e3",
    "9" * 30,
    "1e999",
    "1e-999",
    "9" * 5000,
    "0." + "1" * 5000,
    ".",
    "+1",
    "1 ",
)
PERCENTS = ("0%", "10%", "100%", "101%", "-5%", "9" * 300 + "%", "9" * 4300 + "%", "1.5%", "%")
STRINGS = (
    "",
    "a",
    "x-y",
    "A_b",
    "0",
    "-1",
    "node-1",
    "default",
    "fuzzed",
    "kubernetes.io/x",
    "system:masters",
    "*",
    "/",
    "../..",
    "a/b/c",
    "a\nb",
    "\r\nX: 1",
    "\x00",
    "\u202e",
    "é" * 300,
    "²",
    "٣",
    "1_000",
    "a" * 64,
    "a" * 254,
    "a" * 70_000,
    "9" * 5000,
    "%s%n",
    "$(A)",
    "$(A",
    "(a+)+$",
    "[",
    "10.0.0.0/33",
    "10.0.0.1",
    "::1",
    "255.255.255.255",
    "Asia/Tokyo",
    "../../etc/passwd",
    "* * * * *",
    "0/0 * * * *",
    "*/" + "9" * 400 + " * * * *",
    "@every 1ns",
    "@every 1" + "0" * 400 + "h",
    "{{.}}",
    "true",
    "null",
)
ANY: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    2**63,
    1e308,
    "",
    "x",
    [],
    {},
    [None],
    [[]],
    [{}],
    {"": ""},
    {"a": {"b": {}}},
)
KEYS = (
    "a",
    "app",
    "",
    "a/b",
    "x.example.com/y",
    "A" * 64,
    "a\r\nX: 1",
    "\x00",
    "é",
    "kubernetes.io/hostname",
    "job-name",
)
ANNOTATIONS = (
    "batch.kubernetes.io/job-completion-index",
    "batch.kubernetes.io/job-index-failure-count",
    "batch.kubernetes.io/job-index-ignored-failure-count",
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deprecated.daemonset.template.generation",
    "controller.kubernetes.io/pod-deletion-cost",
    "endpoints.kubernetes.io/last-change-trigger-time",
    "endpoints.kubernetes.io/over-capacity",
    "kubectl.kubernetes.io/last-applied-configuration",
    "kubernetes.io/config.mirror",
    "node.alpha.kubernetes.io/ttl",
    "pv.kubernetes.io/bind-completed",
    "service.kubernetes.io/topology-mode",
    "volume.kubernetes.io/selected-node",
    "statefulset.kubernetes.io/pod-name",
)
"""Annotations and labels that components read."""


class Values:
    """Draws values; the same `rng` state gives the same ones. `wild` is the share of values of another type."""

    def __init__(self, rng: random.Random, wild: float = 0.08) -> None:
        self.rng, self.wild = rng, wild

    def key(self) -> str:
        """The name of an entry of a map, or of a field that nobody knows."""
        return self.rng.choice(ANNOTATIONS if self.rng.random() < 0.4 else KEYS)

    def anything(self) -> Any:
        """A value of any type, whatever is asked."""
        # A copy: it may be changed where it is put.
        return copy.deepcopy(self.rng.choice(self.rng.choice((ANY, STRINGS, INTEGERS, FLOATS))))

    def of(self, field: Field) -> Any:
        """A value of this scalar field's type, now and then an extreme one, now and then one of another type."""
        if self.rng.random() < self.wild:
            return self.anything()
        if field.enum and self.rng.random() < 0.7:
            return self.rng.choice(field.enum)
        return self._typed(field)

    def _typed(self, field: Field) -> Any:
        choose = self.rng.choice
        match field.shape:
            case "integer":
                limit = WIDE.get(field.format, 2**31)
                fits = [number for number in INTEGERS if -limit <= number < limit]
                return choose(fits) if self.rng.random() < 0.95 else choose(INTEGERS)
            case "number":
                return choose((*FLOATS, *INTEGERS[:6]))
            case "boolean":
                return choose((True, False))
            case "string":
                return choose(STRINGS)
            case "scalar":
                return self._scalar(field.format)
        return self.anything()

    def _scalar(self, format_: str) -> Any:
        choose = self.rng.choice
        if format_ == "time":
            return choose(TIMES)
        if format_ == "quantity":
            return choose(QUANTITIES)
        if format_ == "intstr":
            return choose((choose(INTEGERS[:9]), choose(PERCENTS), choose(STRINGS)))
        return choose(("", "AAAA", "YQ==", "A" * 4096, "!"))
