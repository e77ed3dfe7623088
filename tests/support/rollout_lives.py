"""Lives of Pods that get requests, made by hand: seconds are exact moments."""

from typing import Any

from lastcall.traffic.lives import MOMENTS, PodLife
from lastcall.traffic.moments import Moment, exactly


def pod_life(uid: str, name: str = "", ip: str = "", **values: Any) -> PodLife:
    """Return a Pod's life; a moment may be given as seconds, a pause as a pair of them."""
    values |= {key: exact(values[key]) for key in MOMENTS if key in values}
    values["pauses"] = [(Moment.at(begin), Moment.at(end)) for begin, end in values.get("pauses", ())]
    return PodLife(uid, name, ip, **values)


def exact(value: Any) -> Moment | None:
    """Return seconds as a moment, and a moment as it is."""
    return value if isinstance(value, Moment) else exactly(value)
