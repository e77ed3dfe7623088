"""Run inside pytest, once everything is collected: learn what tests touch, then try the mutants."""

import contextlib
import importlib
import pkgutil
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType

import pytest

from mutants import choosing, sites, touching, trials
from mutants.choosing import Touched
from mutants.results import SURVIVED, Result
from mutants.sites import Mutant
from mutants.trials import Trial, Write

CONTROLS = 5
"""Trials without a change, with the tests of as many mutants; all must survive."""

UNKNOWN = 30.0
"""CPU seconds that a test may take which has not run before."""


@dataclass(frozen=True)
class Wanted:
    """What a run is to do."""

    project: Path
    source: str
    """The folder of all packages below the project: `src/lastcall`."""
    packages: Sequence[str]
    learned: Sequence[str]
    """Packages whose lines are learned: the same in every run, so that the next one need not learn again."""
    count: int
    seed: str
    budget: float
    at_once: int
    only: Sequence[str]
    """A mutant's line of the report contains one of these."""
    done: Callable[[str, list[Result]], None]

    def place(self, package: str) -> str:
        """Return the folder or file of a package, below the project."""
        path = f"{self.source}/{package}"
        return f"{path}.py" if (self.project / f"{path}.py").is_file() else f"{path}/"


def say(text: str) -> None:
    """Print a line with the time, at once: a child must not print it again."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


class Driver:
    """A plugin of pytest that replaces its loop over the tests."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._failed = False
        self._folders = [wanted.place(each) for each in wanted.learned]
        self._absolute = tuple(f"{wanted.project}/{folder}" for folder in self._folders)
        self._lines = touching.Lines(wanted.project, self._folders)
        self._lines.watch_everything()

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Make tests with Hypothesis repeatable: no examples of earlier runs, no search for smaller ones.

        That a busy machine draws examples slowly is no failure either.
        """
        with contextlib.suppress(ImportError):
            from hypothesis import HealthCheck, Phase, settings

            phases, unchecked = (Phase.explicit, Phase.generate), (HealthCheck.too_slow,)
            settings.register_profile(
                "mutants", database=None, derandomize=True, deadline=None, phases=phases,
                suppress_health_check=unchecked,
            )  # fmt: skip
            settings.load_profile("mutants")

    def pytest_unconfigure(self) -> None:
        """Watch nothing while Python ends."""
        self._lines.watch(())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed = self._failed or report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} files could not be collected")
        self._import_all()
        imported = self._lines.restart()
        self._lines.watch(())
        self._config = session.config
        self._items = {item.nodeid: item for item in session.items}
        self._functions = defaultdict[tuple[str, str, int], list[FunctionType]](list)
        for function in touching.functions(self._absolute):
            code = function.__code__
            self._functions[code.co_filename, code.co_qualname, code.co_firstlineno].append(function)
        self._caches = touching.caches(self._absolute)
        trials.freeze()
        say(f"collected {len(self._items)} tests; {len(self._functions)} functions can be mutated")
        tests = self._learn()
        for package in self._wanted.packages:
            self._wanted.done(package, self._try(package, tests, imported))
        return True

    def _import_all(self) -> None:
        root = self._wanted.source.rpartition("/")[2]
        for package in self._wanted.learned:
            name = f"{root}.{package.replace('/', '.')}"
            module = importlib.import_module(name)
            for each in pkgutil.walk_packages(getattr(module, "__path__", []), f"{name}."):
                if each.name.endswith("__main__"):
                    continue
                try:
                    importlib.import_module(each.name)
                except ImportError as error:
                    say(f"not imported, so nothing in it is mutated: {each.name} ({error})")

    def _learn(self) -> list[Touched]:
        """Return what the tests touch; run those about which nothing is remembered, a child for each file."""
        memory = touching.Memory(
            self._wanted.project,
            self._wanted.project / "build/mutants/touched",
            ["src", "tests/support"],
            self._folders,
        )
        files = defaultdict[str, list[pytest.Item]](list)
        for item in self._items.values():
            files[item.nodeid.partition("::")[0]].append(item)
        new = [path for path in files if memory.read(path) is None]
        say(f"{len(new)} of {len(files)} test files run to learn what they touch")
        count = 0

        def ended(trial: Trial) -> None:
            nonlocal count
            count += 1
            if trial.outcome != SURVIVED:
                say(f"not used: {trial.name} ended in {trial.test}")
            elif count % 25 == 0 or trial.seconds > 60:
                say(f"[{count}] {trial.name}: {trial.seconds} s")

        trials.run([self._learning(path, files[path], memory) for path in new], self._wanted.at_once, ended)
        tests = [test for path in files for test in memory.read(path) or ()]
        say(f"{len(tests)} tests pass")
        return [test for test in tests if test.test in self._items]

    def _learning(self, path: str, items: Sequence[pytest.Item], memory: touching.Memory) -> Trial:
        def body(write: Write) -> None:
            trials.isolate(self._config)
            self._lines.watch(touching.codes(each for found in self._functions.values() for each in found))
            touched = list[Touched]()
            for number, item in enumerate(items):
                write(f"started {number}")
                for cache in self._caches:
                    cache.cache_clear()
                self._failed = False
                self._lines.restart()
                began = time.process_time()
                trials.run_alone(item)
                seconds = round(time.process_time() - began, 3)
                lines = self._lines.restart()
                if not self._failed:
                    touched.append(Touched(item.nodeid, seconds, lines))
            memory.write(path, touched)

        return Trial(path, [Touched(item.nodeid, UNKNOWN) for item in items], body)

    def _try(self, package: str, tests: list[Touched], imported: Mapping[str, int]) -> list[Result]:
        """Try a package's mutants, then what killed them without a change; repeat where that failed, too."""
        mutants = self._drawn(package, tests, imported)
        say(f"{package}: {len(mutants)} mutants")
        results = dict[Mutant, Result]()
        confirmed = set[str]()
        waiting = mutants
        while waiting:
            for result in self._run(waiting, tests):
                results[result.mutant] = result
            killers = {each.test for each in results.values() if each.is_killed} - confirmed
            wrong = self._fail_anyway([each for each in tests if each.test in killers])
            confirmed |= killers
            tests = [each for each in tests if each.test not in wrong]
            waiting = [mutant for mutant, each in results.items() if each.test in wrong]
        self._control(mutants, tests)
        return [results[mutant] for mutant in mutants]

    def _drawn(self, package: str, tests: list[Touched], imported: Mapping[str, int]) -> list[Mutant]:
        place = self._wanted.project / self._wanted.place(package)
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
        names = {path: path.relative_to(self._wanted.project).as_posix() for path in files}
        every = [mutant for path, name in names.items() for mutant in sites.mutants(path.read_text(), name)]
        listed = choosing.read_equivalents(self._wanted.project / "tests/mutants-equivalent.toml")
        for each in choosing.stale(every, listed, set(names.values())):
            say(f"tests/mutants-equivalent.toml: {each.path} no longer has {each.change} in {each.function}")
        drawn = list[Mutant]()
        for mutant in choosing.without_equivalents(choosing.shuffled(every, f"{self._wanted.seed} {package}"), listed):
            if len(drawn) == self._wanted.count:
                break
            if not any(text in str(mutant) for text in self._wanted.only):
                continue
            if choosing.only_at_import(mutant, imported, tests):
                continue
            path = self._wanted.project / mutant.path
            if sites.replacements(path.read_text(), str(path), mutant.number):
                drawn.append(mutant)
        return drawn

    def _swap(self, mutant: Mutant) -> None:
        path = self._wanted.project / mutant.path
        for (name, line), code in sites.replacements(path.read_text(), str(path), mutant.number).items():
            if not name.endswith(">"):  # lambdas and generators come anew from the function around them
                for function in self._functions.get((str(path), name, line), ()):
                    function.__code__ = code
        for cache in self._caches:
            cache.cache_clear()

    def _trial(self, name: str, tests: Sequence[Touched], mutant: Mutant | None) -> Trial:
        def body(write: Write) -> None:
            trials.isolate(self._config)
            if mutant:
                self._swap(mutant)
            items = [(self._items[each.test], each.seconds) for each in tests]
            trials.run_until_failure(items, self._wanted.budget, lambda: self._failed, write)

        return Trial(name, tests, body)

    def _run(self, mutants: Sequence[Mutant], tests: Sequence[Touched]) -> list[Result]:
        results = list[Result]()
        of = {str(number): mutant for number, mutant in enumerate(mutants)}

        def ended(trial: Trial) -> None:
            why = f"{trial.ran} of {len(trial.tests)} tests ran" if trial.tests else "no test runs the line"
            mutant = of[trial.name]
            results.append(Result(mutant, trial.outcome, trial.test, why, trial.seconds))
            say(f"[{len(results)}/{len(mutants)}] {trial.outcome} in {trial.seconds} s: {mutant} {trial.test or why}")

        todo = [self._trial(name, choosing.chosen_tests(mutant, tests), mutant) for name, mutant in of.items()]
        trials.run(todo, self._wanted.at_once, ended)
        return results

    def _fail_anyway(self, tests: Sequence[Touched]) -> set[str]:
        """Return those tests that fail without a change when they run alone."""
        wrong = set[str]()

        def ended(trial: Trial) -> None:
            if trial.outcome != SURVIVED:
                wrong.add(trial.name)
                say(f"not used: fails without a change, alone: {trial.name}")

        trials.run([self._trial(each.test, [each], None) for each in tests], self._wanted.at_once, ended)
        return wrong

    def _control(self, mutants: Sequence[Mutant], tests: Sequence[Touched]) -> None:
        """Run the tests of some mutants without the change. Raises RuntimeError if one fails: the figures are wrong."""
        failed = list[str]()

        def ended(trial: Trial) -> None:
            if trial.outcome != SURVIVED:
                failed.append(f"{trial.test} ({trial.outcome} after {trial.ran} others)")

        todo = [self._trial(str(each), choosing.chosen_tests(each, tests), None) for each in mutants[:CONTROLS]]
        trials.run(todo, self._wanted.at_once, ended)
        if failed:
            raise RuntimeError(f"Tests fail without a change, so the figures are wrong: {', '.join(failed)}")
        say(f"{len(todo)} control runs without a change: no test failed")
