"""What the service proxy counts, and what that is called in `/metrics`. Source: pkg/proxy/metrics/metrics.go.

Of the families for iptables there are none here: rules are nftables.
"""

from collections.abc import Iterator

from lastcall.world.clock import Clock
from lastcall.world.counting import Family, Histogram, exponential

SECONDS = exponential(0.001, 2, 15)
FAMILY = {"ip_family": "IPv4"}


class ProxyCounts:
    """Of one proxy, which serves IPv4."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._whole, self._partial = Histogram(SECONDS), Histogram(SECONDS)
        self._changes = {"service": 0, "slice": 0}
        self._synced_at = self._queued_at = 0.0

    def changed(self, kind: str) -> None:
        """Count a change: a Service or a slice came, changed or went."""
        if kind in self._changes:
            self._changes[kind] += 1
            self._queued_at = self._clock.wall_ns() / 1e9

    def synced(self, began: int, whole: bool) -> None:
        """Count a sync of the kernel's rules: `whole` if all were written, else those that changed."""
        (self._whole if whole else self._partial).observe((self._clock.monotonic_ns() - began) / 1e9)
        self._synced_at = self._clock.wall_ns() / 1e9

    def families(self) -> Iterator[Family]:
        """Yield the metrics."""
        every = Histogram(SECONDS)
        every.add(self._whole)
        every.add(self._partial)
        yield "kubeproxy_sync_proxy_rules_duration_seconds", [(FAMILY, every)]
        yield "kubeproxy_sync_full_proxy_rules_duration_seconds", [(FAMILY, self._whole)]
        yield "kubeproxy_sync_partial_proxy_rules_duration_seconds", [(FAMILY, self._partial)]
        yield "kubeproxy_sync_proxy_rules_service_changes_total", [({}, self._changes["service"])]
        yield "kubeproxy_sync_proxy_rules_endpoint_changes_total", [({}, self._changes["slice"])]
        yield "kubeproxy_sync_proxy_rules_last_timestamp_seconds", [(FAMILY, self._synced_at)]
        yield "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds", [(FAMILY, self._queued_at)]
