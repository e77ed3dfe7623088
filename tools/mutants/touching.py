"""Learn which lines of the sources run, with events of `sys.monitoring` (Python 3.12 and newer)."""

import functools
import gc
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from mutants.choosing import Touched

TOOL = 4
"""An identifier of `sys.monitoring` that no known tool uses."""

monitoring: Any = getattr(sys, "monitoring", None)


class Lines:
    """The lines of some source files that ran since the last `restart`."""

    def __init__(self, project: Path, folders: Iterable[str]) -> None:
        self._prefix = f"{project}/"
        self._folders = tuple(f"{project}/{folder}" for folder in folders)
        self._seen: dict[str, int] = {}
        monitoring.use_tool_id(TOOL, "mutants")
        monitoring.register_callback(TOOL, monitoring.events.LINE, self._line)

    def _line(self, code: CodeType, line: int) -> Any:
        path = code.co_filename
        if path.startswith(self._folders) and code.co_flags & 1:  # a function's, not a module's or class body's
            self._seen[path] = self._seen.get(path, 0) | 1 << line
        return monitoring.DISABLE

    def watch_everything(self) -> None:
        """Watch all code, also that which is imported from now on."""
        monitoring.set_events(TOOL, monitoring.events.LINE)

    def watch(self, codes: Iterable[CodeType]) -> None:
        """Watch these functions alone."""
        monitoring.set_events(TOOL, 0)
        for code in codes:
            monitoring.set_local_events(TOOL, code, monitoring.events.LINE)

    def restart(self) -> dict[str, int]:
        """Forget the lines and return them: path below the project → bits."""
        seen, self._seen = self._seen, {}
        monitoring.restart_events()
        return {path.removeprefix(self._prefix): lines for path, lines in seen.items()}


def functions(folders: tuple[str, ...]) -> list[FunctionType]:
    """Return every function that exists and whose code is in one of these folders or files (absolute paths)."""
    found = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
    return [each for each in found if each.__code__.co_filename.startswith(folders)]


def codes(of: Iterable[FunctionType]) -> set[CodeType]:
    """Return the code of functions, with that of the functions within them."""

    def within(code: CodeType) -> Iterator[CodeType]:
        yield code
        for each in code.co_consts:
            if isinstance(each, CodeType):
                yield from within(each)

    return {code for function in of for code in within(function.__code__)}


def caches(folders: tuple[str, ...]) -> list[Any]:
    """Return the `functools.cache` objects around functions in these folders."""
    kind: Any = functools._lru_cache_wrapper
    found = [each for each in gc.get_objects() if isinstance(each, kind)]
    return [each for each in found if getattr(each.__wrapped__, "__code__", None) and _is_in(each.__wrapped__, folders)]


def _is_in(function: FunctionType, folders: tuple[str, ...]) -> bool:
    return function.__code__.co_filename.startswith(folders)


class Memory:
    """What was learned, a file for each test file, as long as neither it nor the sources and helpers change."""

    def __init__(self, project: Path, folder: Path, shared: Iterable[str], folders: Iterable[str]) -> None:
        self._project = project
        self._folder = folder
        files = sorted(path for name in shared for path in (project / name).rglob("*.py"))
        files += sorted((project / "tests").rglob("conftest.py"))
        digest = hashlib.sha256("\n".join(folders).encode())
        for path in files:
            digest.update(path.as_posix().encode() + b"\0" + path.read_bytes())
        self._base = digest.digest()

    def _place(self, test_file: str) -> Path:
        content = (self._project / test_file).read_bytes()
        return self._folder / f"{hashlib.sha256(self._base + test_file.encode() + content).hexdigest()[:32]}.json"

    def read(self, test_file: str) -> list[Touched] | None:
        """Return what is known of a file's tests; None if they have to run."""
        try:
            entries = json.loads(self._place(test_file).read_text())
        except FileNotFoundError:
            return None
        return [
            Touched(each["test"], each["seconds"], {path: int(bits, 16) for path, bits in each["lines"].items()})
            for each in entries
        ]

    def write(self, test_file: str, tests: Iterable[Touched]) -> None:
        """Remember a file's tests."""
        entries = [
            {"test": each.test, "seconds": each.seconds, "lines": {path: f"{n:x}" for path, n in each.lines.items()}}
            for each in tests
        ]
        self._folder.mkdir(parents=True, exist_ok=True)
        self._place(test_file).write_text(json.dumps(entries))
