"""When an Event was last written, by what its writer says."""

from datetime import UTC, datetime

import pytest

from lastcall.kube.apiserver.registry.event_ttl import last_written

CREATED, NOW = "2026-11-29T03:00:00Z", datetime(2026, 11, 29, 4, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("last", "observed", "expected"),
    [
        (None, None, 0),
        ("2026-11-29T03:30:00Z", None, 30),
        (None, "2026-11-29T03:40:00Z", 40),
        ("2026-11-29T03:30:00Z", "2026-11-29T03:40:00Z", 40),
        ("2020-01-01T00:00:00Z", None, 0),
        ("9999-12-31T23:59:59Z", None, 0),
        ("9999-12-31T23:59:59Z", "2026-11-29T03:40:00Z", 40),
    ],
)
def test_a_time_in_the_future_is_no_time_of_a_write(last: str | None, observed: str | None, expected: int) -> None:
    event = {
        "metadata": {"creationTimestamp": CREATED},
        "lastTimestamp": last,
        "series": {"lastObservedTime": observed},
    }
    assert last_written(event, NOW) == datetime(2026, 11, 29, 3, expected, tzinfo=UTC)
