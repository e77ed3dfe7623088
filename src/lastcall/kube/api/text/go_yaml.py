"""YAML as Kubernetes reads it: sigs.k8s.io/yaml, without recursion and within bounds.

libyaml's parser, which keeps its states on the heap, emits events; from them the value is built with a stack of our
own. (Its composer calls itself once a level and overflows the C stack at some ten thousand of them.)

A big text takes seconds: `steps` gives its caller a turn every few milliseconds.

Sources: sigs.k8s.io/yaml (goyaml.v2/decode.go, yaml.go), tried on Kubernetes 1.36.
"""

# check: many attributes _Reader because it keeps the types of events at hand: each event is compared with them

from collections.abc import Generator
from functools import cache
from typing import Any

import orjson
import yaml

from lastcall.kube.api.field import go_quote
from lastcall.kube.api.text.json_bounds import MAX_DEPTH, MAX_VALUES
from lastcall.kube.api.text.yaml_scalars import MERGE, NotInJSON, ScalarError, as_json, go_value, key_text, resolve

MAX_TEXT = 16 << 20
"""Characters of all scalars of a document, with its aliases written out."""
MAX_DIRECTIVES = 100
"""libyaml compares each with all before it."""
MAX_PROBLEMS = 100
_TOO_DEEP = "exceeded maximum nesting depth"
"""What libyaml says from 1000 levels on: its scanner reads ahead of the events, so that it may come first."""
SLICE = 2000
"""Events between two turns of others: about 10 ms."""

_FREE_ALIASED, _FREE_VALUES = 100, 1000
_OPEN = object()


class YAMLError(ValueError):
    """The text is not YAML, or none that can be JSON. The message is Go's, from `yaml: ` or `json: ` on."""


class _Frame:
    """A list or map that is being read. `value` None is the document itself."""

    __slots__ = ("anchor", "at", "key", "kinds", "line", "lines", "merging", "nodes", "value", "waiting")

    def __init__(self, value: Any, line: int, anchor: str | None, nodes: int, at: int) -> None:
        self.value = value
        self.line = line
        self.anchor = anchor
        self.nodes, self.at = nodes, at
        """How many values and characters had been read when it began."""
        self.key: Any = None
        self.waiting = False
        """Whether `key` waits for its value."""
        self.merging = False
        """Whether the next value is that of `<<`; of a list: whether it is such a value."""
        self.kinds: dict[str, type] = {}
        """Types of the keys that are not texts."""
        self.lines: dict[str, int] | None = None
        """Lines of a map's values, where they may be merged into another."""


class _Mapping:
    """A map where it is asked whether a value is one: what it has, and the lines of its values."""

    __slots__ = ("lines", "value")

    def __init__(self, value: dict[str, Any], lines: dict[str, int]) -> None:
        self.value, self.lines = value, lines


def decode(data: bytes, problems: list[str] | None = None, *, max_text: int = MAX_TEXT) -> Any:
    """Return the first document of a text as JSON has it, None for an empty one. Raises YAMLError.

    `problems` gets, in Go's words, the keys that a map has twice, of which the last one counts.
    """
    reading = steps(data, problems, max_text=max_text)
    while True:
        try:
            next(reading)
        except StopIteration as end:
            return end.value


def steps(data: bytes, problems: list[str] | None = None, *, max_text: int = MAX_TEXT) -> Generator[None, None, Any]:
    """Decode as `decode` does, a slice at a time: the generator's return value is the result. Raises YAMLError."""
    _check_directives(data)
    reader = _Reader([] if problems is None else problems, max_text)
    try:
        events = _parser()(data)
    except yaml.YAMLError as error:
        raise YAMLError(_parse_error(error)) from None
    try:
        while not reader.done:
            for _ in range(SLICE):
                reader.take(events.get_event())
                if reader.done:
                    break
            else:
                yield
    except yaml.YAMLError as error:
        raise YAMLError(_parse_error(error)) from None
    except ScalarError as error:
        raise YAMLError(f"yaml: {error}") from None
    except NotInJSON as error:
        raise YAMLError(str(error)) from None
    finally:
        events.dispose()
    if reader.aliased:  # the value of an alias is shared until here
        return orjson.loads(orjson.dumps(reader.value))
    return reader.value


@cache
def _parser() -> Any:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Reader:
    """Builds one document's value from its events."""

    def __init__(self, problems: list[str], max_text: int) -> None:
        self.value: Any = None
        self.done = False
        self.aliased = 0
        """How many values came by aliases."""
        self._problems = problems
        self._max_text = max_text
        self._values = self._text = 0
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        """Name → value (a `_Mapping` for a map), number of values, characters."""
        self._scalar, self._alias = yaml.ScalarEvent, yaml.AliasEvent
        self._start, self._end = yaml.CollectionStartEvent, yaml.CollectionEndEvent
        self._map = yaml.MappingStartEvent
        self._document, self._document_end, self._stream_end = (
            yaml.DocumentStartEvent,
            yaml.DocumentEndEvent,
            yaml.StreamEndEvent,
        )

    def take(self, event: Any) -> None:
        kind = type(event)
        if kind is self._scalar:
            self._count(1, len(event.value))
            tag, plain, text = event.tag or "", event.implicit[0], event.value
            frame = self._frames[-1] if self._frames else None
            if (
                text == "<<"
                and frame is not None
                and type(frame.value) is dict
                and not frame.waiting
                and (plain or tag == MERGE)
            ):
                frame.waiting = frame.merging = True
                return
            value = resolve(tag, text, plain=plain)
            if event.anchor is not None:
                self._anchors[event.anchor] = value, 1, len(text)
            self._add(value, event)
        elif kind is self._alias:
            found = self._anchors.get(event.anchor)
            if found is None:
                raise YAMLError(f"yaml: unknown anchor '{event.anchor}' referenced")
            value, values, text = found
            if value is _OPEN:
                raise YAMLError(f"yaml: anchor '{event.anchor}' value contains itself")
            self.aliased += values
            self._count(values + 1, text)
            self._add(value, event)
        elif issubclass(kind, self._start):
            self._open(event, {} if kind is self._map else [])
        elif issubclass(kind, self._end):
            self._close()
        elif kind is self._document:
            if event.version not in (None, (1, 1)):
                line = f"line {event.start_mark.line}: " if event.start_mark.line else ""
                raise YAMLError(f"yaml: {line}found incompatible YAML document")
            self._values = 1
        elif kind is self._document_end or kind is self._stream_end:
            self.done = True

    def _count(self, values: int, text: int) -> None:
        """Raises YAMLError when there are too many. (`decoder.unmarshal`, `allowedAliasRatio`)"""
        self._values += values
        self._text += text
        if self._values > MAX_VALUES or self._text > self._max_text:
            if self.aliased:
                raise YAMLError("yaml: document contains excessive aliasing")
            raise YAMLError(f"yaml: document has more than {MAX_VALUES} values")
        if (
            values > 1
            and self.aliased > _FREE_ALIASED
            and self._values > _FREE_VALUES
            and self.aliased / self._values > _allowed_ratio(self._values)
        ):
            raise YAMLError("yaml: document contains excessive aliasing")

    def _open(self, event: Any, value: Any) -> None:
        if len(self._frames) >= MAX_DEPTH:
            raise YAMLError(f"yaml: line {event.start_mark.line + 1}: exceeded max depth of {MAX_DEPTH}")
        above = self._frames[-1] if self._frames else None
        frame = _Frame(value, event.start_mark.line, event.anchor, self._values, self._text)
        self._count(1, 2)
        merging = above is not None and above.merging
        if type(value) is dict:
            if merging or event.anchor is not None:
                frame.lines = {}
        else:
            frame.merging = merging and above is not None and type(above.value) is dict
        if merging and above is not None and type(above.value) is list and type(value) is not dict:
            raise YAMLError(_WANT_MAP)
        if event.anchor is not None:
            self._anchors[event.anchor] = _OPEN, 0, 0
        self._frames.append(frame)

    def _close(self) -> None:
        frame = self._frames.pop()
        value = frame.value if frame.lines is None else _Mapping(frame.value, frame.lines)
        if frame.anchor is not None:
            kept = [_json(each) for each in frame.value] if frame.merging else value
            self._anchors[frame.anchor] = kept, self._values - frame.nodes, self._text - frame.at
        self._add(value, frame, frame.merging)

    def _add(self, value: Any, where: Any, merged_list: bool = False) -> None:
        """Add a whole value (a map that may be merged is a `_Mapping`) to the list or map around it."""
        if not self._frames:
            self.value = _json(value)
            return
        frame = self._frames[-1]
        if type(frame.value) is list:
            if frame.merging and type(value) is not _Mapping:
                raise YAMLError(_WANT_MAP)
            frame.value.append(value if frame.merging else _json(value))
            return
        if not frame.waiting:
            self._key(frame, value)
            return
        frame.waiting = False
        if frame.merging:
            frame.merging = False
            if type(value) is _Mapping:
                parts = [value]
            elif merged_list:
                parts = value[::-1]  # earlier ones take precedence
            else:
                raise YAMLError(_WANT_MAP)
            for part in parts:
                for key, item in part.value.items():
                    self._set(frame, key, item, part.lines.get(key, frame.line))
            return
        key = frame.key
        text = key if type(key) is str else key_text(key)
        line = where.line if isinstance(where, _Frame) else where.start_mark.line
        if text is None:
            type_, shown = ("%!s(<nil>)", "<nil>") if key is None else ("uint64", hex(key))
            raise YAMLError(f"unsupported map key of type: {type_}, key: {shown}, value: {go_value(_json(value))}")
        self._set(frame, text, _json(value), line, type(key))

    def _key(self, frame: _Frame, key: Any) -> None:
        if isinstance(key, list | _Mapping | dict):
            shown = go_value(key.value if isinstance(key, _Mapping) else key)
            raise YAMLError(f"yaml: invalid map key: {shown}")
        frame.key, frame.waiting = key, True

    def _set(self, frame: _Frame, key: str, value: Any, line: int, kind: type = str) -> None:
        if key in frame.value and frame.kinds.get(key, str) is kind and len(self._problems) < MAX_PROBLEMS:
            shown = go_quote(key) if kind is str else key
            self._problems.append(f"line {line + 1}: key {shown} already set in map")
        frame.value[key] = value
        if kind is not str:
            frame.kinds[key] = kind
        if frame.lines is not None:
            frame.lines[key] = line


_WANT_MAP = "yaml: map merge requires map or sequence of maps as the value"


def _json(value: Any) -> Any:
    """Return a value as it is after Go wrote it as JSON and read it again. Raises NotInJSON."""
    return value.value if type(value) is _Mapping else as_json(value)


def _allowed_ratio(values: int) -> float:
    """Which part of a document may come by aliases: nearly all of a small one, a tenth of a big one."""
    low, high = 400_000, 4_000_000
    return 0.99 if values <= low else 0.10 if values >= high else 0.99 - 0.89 * (values - low) / (high - low)


def _check_directives(data: bytes) -> None:
    """Raises YAMLError when a text begins with more directives than a reader can be asked to compare."""
    if not data.startswith((b"%", b"#", b"\n", b"\r", b" ", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        return
    if max(data.count(b"%TAG"), data.count("%TAG".encode("utf-16-le")[:-1])) > MAX_DIRECTIVES:
        raise YAMLError(f"yaml: more than {MAX_DIRECTIVES} directives")


def _parse_error(error: Any) -> str:
    """What the parser has to say, in Go's words."""
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).replace("\n", " ")
    marks = (getattr(error, name, None) for name in ("problem_mark", "context_mark"))
    line = next((mark.line for mark in marks if mark is not None and mark.line), 0)
    if problem == _TOO_DEEP:
        return f"yaml: line {line + 1}: exceeded max depth of {MAX_DEPTH}"
    if line and type(error).__name__ == "ScannerError":
        line += 1  # only its scanner counts from one
    return f"yaml: line {line}: {problem}" if line else f"yaml: {problem}"
