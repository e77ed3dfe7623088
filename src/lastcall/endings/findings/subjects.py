"""What rows of the table of causes are about. Data only."""

# check: pure

from collections.abc import Callable, Iterator, Sequence

from lastcall.endings.story import ContainerEnding, Ending, Entry
from lastcall.world.dataclass import dataclass


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
    """One run of a container."""

    ending: Ending
    run: ContainerEnding
    version: str

    def entries(self, kinds: Sequence[str]) -> Iterator[Entry]:
        """Yield the records of these kinds of the run, and those of its Pod that name no container."""
        return _of_run(self.ending, self.run, kinds)


@dataclass(frozen=True, slots=True)
class ContainerSubject:
    """All runs of a container that ended before its Pod's end. `last` is empty if the last one did not."""

    ending: Ending
    earlier: Sequence[ContainerEnding]
    last: Sequence[ContainerEnding]

    @property
    def runs(self) -> list[ContainerEnding]:
        return [*self.earlier, *self.last]

    def newest(self, test: Callable[[ContainerEnding], bool]) -> "ContainerSubject":
        """Return the subject with the newest of its runs that fulfil `test` alone."""
        return ContainerSubject(self.ending, [run for run in self.runs if test(run)][-1:], ())

    def entries(self, kinds: Sequence[str]) -> Iterator[Entry]:
        """Yield the records of these kinds of the newest run."""
        return _of_run(self.ending, self.runs[-1], kinds) if self.runs else iter(())


def _of_run(ending: Ending, run: ContainerEnding, kinds: Sequence[str]) -> Iterator[Entry]:
    ends_at = _next_start(run, ending)
    for entry in ending.entries:
        if entry.record.container in (run.name, "") and entry.record.kind in kinds:
            begun = run.started_at is None or entry.at >= run.started_at
            if begun and (ends_at is None or entry.at < ends_at):
                yield entry


def _next_start(run: ContainerEnding, ending: Ending) -> float | None:
    """Return when the container was started again, None for its last run."""
    starts = [c.started_at for c in [*ending.earlier, *ending.containers] if c.name == run.name]
    begun = run.started_at
    return min((at for at in starts if at is not None and begun is not None and at > begun), default=None)
