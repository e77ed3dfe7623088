"""What rows of the table of causes are about. Data only."""

# check: pure

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lastcall.endings.story import ContainerEnding, Ending, Entry


@dataclass(frozen=True, slots=True)
class PodSubject:
    """A Pod and its end."""

    ending: Ending

    def entries(self, kinds: Sequence[str]) -> Iterator[Entry]:
        """Yield the Pod's records of these kinds."""
        return (entry for entry in self.ending.entries if entry.record.kind in kinds)


@dataclass(frozen=True, slots=True)
class RecordSubject:
    """One record of a Pod that is worth a sentence of its own."""

    ending: Ending
    entry: Entry

    def entries(self, kinds: Sequence[str]) -> Iterator[Entry]:
        """Yield the record, if it is of these kinds."""
        return iter((self.entry,) if self.entry.record.kind in kinds else ())


@dataclass(frozen=True, slots=True)
class RunSubject:
    """One run of a container. `ends_at` is when the next run began, None for the last one."""

    ending: Ending
    run: ContainerEnding
    version: str
    ends_at: float | None = None

    def entries(self, kinds: Sequence[str]) -> Iterator[Entry]:
        """Yield the run's records of these kinds."""
        return _of_run(self.ending, self.run, self.ends_at, kinds)


@dataclass(frozen=True, slots=True)
class ContainerSubject:
    """All runs of a container that ended before its Pod's end. `last` is empty if the last one did not."""

    ending: Ending
    earlier: Sequence[ContainerEnding]
    last: Sequence[ContainerEnding]

    @property
    def runs(self) -> list[ContainerEnding]:
        return [*self.earlier, *self.last]

    def entries(self, kinds: Sequence[str]) -> Iterator[Entry]:
        """Yield the records of these kinds of the newest run."""
        return _of_run(self.ending, self.runs[-1], None, kinds) if self.runs else iter(())


def _of_run(ending: Ending, run: ContainerEnding, ends_at: float | None, kinds: Sequence[str]) -> Iterator[Entry]:
    for entry in ending.entries:
        if entry.record.container == run.name and entry.record.kind in kinds:
            begun = run.started_at is None or entry.at >= run.started_at
            if begun and (ends_at is None or entry.at < ends_at):
                yield entry
