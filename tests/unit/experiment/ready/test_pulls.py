"""What is waited for says how far a pull of another container runtime is."""

from lastcall.experiment.ready.waiting import Waiting
from lastcall.records import kinds
from lastcall.records.record import Record


class Clock:
    def monotonic_ns(self) -> int:
        return 10_000_000_000


def pulled(at: float, done: int | None, total: int | None, image: str = "big:1") -> Record:
    facts = {"image": image, "seconds": 3.0, "bytes": done, "total": total}
    return Record(f"r{at}", int(at * 1e9), 0, "runtime", kinds.IMAGE_PULL_PROGRESS, facts=facts)


def said(*records: Record) -> list[str]:
    waiting = Waiting(None, Clock(), records, 60.0, lambda *_: None)  # type: ignore[arg-type]
    return waiting._pulls()


def test_the_newest_progress_is_shown_while_the_pull_goes_on() -> None:
    other = Record("r", 10_000_000_000, 0, "kubelet", kinds.POD_ADMITTED)
    assert said(pulled(8.0, 1 << 20, 3 << 20), pulled(9.0, 2 << 20, 3 << 20), other) == [
        "pulling big:1: 2.0 of 3.0 MiB"
    ]
    assert said(pulled(9.0, None, None)) == ["pulling big:1 for 3.0 s"]
    assert said(pulled(5.0, 1 << 20, 3 << 20)) == []
    assert said(other) == []
    assert said() == []


def test_of_two_pulls_at_a_time_both_are_shown() -> None:
    records = [pulled(8.0, 1 << 20, 3 << 20), pulled(8.1, None, None, "b:1"), pulled(9.0, 2 << 20, 3 << 20)]
    assert said(*records) == ["pulling big:1: 2.0 of 3.0 MiB", "pulling b:1 for 3.0 s"]
    assert said(pulled(5.0, 1 << 20, 3 << 20), pulled(9.0, None, None, "b:1")) == ["pulling b:1 for 3.0 s"]
