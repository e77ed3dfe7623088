"""From rules about system calls to the kernel's classic BPF (kernel Documentation/userspace-api/seccomp_filter.rst).

A filter sees the call's number, the architecture it was made for, and six 64-bit arguments; it answers an action. The
numbers are looked up by a binary search, so that a long list costs a call some ten comparisons.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KILL_PROCESS = 0x8000_0000
KILL_THREAD = 0x0000_0000
TRAP = 0x0003_0000
USER_NOTIF = 0x7FC0_0000
TRACE = 0x7FF0_0000
LOG = 0x7FFC_0000
ALLOW = 0x7FFF_0000


def errno_action(number: int) -> int:
    """Return the action by which the call is not made and fails with this errno; with 0 it succeeds."""
    return 0x0005_0000 | (number & 0xFFFF)


AUDIT_ARCH = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}

_LOAD, _AND = 0x20, 0x54
_JUMP, _JEQ, _JGT, _JGE = 0x05, 0x15, 0x25, 0x35
_RETURN = 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_LARGEST = 4096  # instructions: BPF_MAXINSNS

OPERATORS = ("EQ", "NE", "LT", "LE", "GT", "GE", "MASKED_EQ", "MASKED_NE")
"""libseccomp's, and one of our own."""


class Condition:
    """A comparison of argument `index` with `value`.

    For MASKED_EQ and MASKED_NE, `value` is the mask, and the masked argument is compared with `second`.
    """

    def __init__(self, index: int, operator: str, value: int, second: int = 0) -> None:
        if not 0 <= index <= 5 or operator not in OPERATORS:
            raise ValueError(f"no condition: argument {index} {operator}")
        self.index, self.operator = index, operator
        self.value, self.second = value & (1 << 64) - 1, second & (1 << 64) - 1


class Rule:
    """The action of a call whose arguments meet every condition."""

    def __init__(self, action: int, conditions: Sequence[Condition] = ()) -> None:
        self.action, self.conditions = action, tuple(conditions)


def compile_filter(
    machine: str,
    rules: Mapping[int, Sequence[Rule]],
    default: int,
    *,
    other_architecture: int,
    unknown: tuple[int, int] | None = None,
) -> bytes:
    """Compile the program: for each number the first rule that fits, else `default`.

    `other_architecture` is the action for calls of another one, such as those of 32-bit programs, whose numbers mean
    something else. `unknown` is (first number, action) for everything from that number on that has no rules, x32
    calls included.
    Raises ValueError for a machine without a table, and when the program is longer than the kernel takes.
    """
    if machine not in AUDIT_ARCH:
        raise ValueError(f"no seccomp filters for {machine}")
    out = _Assembler()
    out.emit(_LOAD, _ARCH)
    native = out.new_label()
    out.jump_if(_JEQ, AUDIT_ARCH[machine], native)
    out.emit(_RETURN, other_architecture)
    out.place(native)
    out.emit(_LOAD, _NUMBER)
    _search(out, _segments(rules, default, unknown), default)
    return out.assemble()


def _segments(
    rules: Mapping[int, Sequence[Rule]], default: int, unknown: tuple[int, int] | None
) -> list[tuple[int, tuple[Rule, ...]]]:
    """(first number, rules) of each run of numbers with the same answer, from 0 on."""
    found: list[tuple[int, tuple[Rule, ...]]] = []

    def begin(number: int, what: tuple[Rule, ...]) -> None:
        if found and found[-1][0] == number:
            found.pop()
        if found and _same(found[-1][1], what):
            return
        found.append((number, what))

    plain = (Rule(default),)
    begin(0, plain)
    for number in sorted(rules):
        begin(number, tuple(rules[number]) or plain)
        begin(number + 1, plain)
    if unknown is not None:
        first, action = unknown
        found = [segment for segment in found if segment[0] < first]
        begin(first, (Rule(action),))
        for number in sorted(number for number in rules if number >= first):
            begin(number, tuple(rules[number]))
            begin(number + 1, (Rule(action),))
    return found


def _same(one: tuple[Rule, ...], other: tuple[Rule, ...]) -> bool:
    simple = len(one) == len(other) == 1 and not one[0].conditions and not other[0].conditions
    return simple and one[0].action == other[0].action


def _search(out: _Assembler, segments: Sequence[tuple[int, tuple[Rule, ...]]], default: int) -> None:
    if len(segments) == 1:
        _decide(out, segments[0][1], default)
        return
    middle = len(segments) // 2
    upper = out.new_label()
    out.jump_if(_JGE, segments[middle][0], upper)
    _search(out, segments[:middle], default)
    out.place(upper)
    _search(out, segments[middle:], default)


def _decide(out: _Assembler, rules: Sequence[Rule], default: int) -> None:
    for rule in rules:
        following = out.new_label()
        for condition in rule.conditions:
            _compare(out, condition, following)
        out.emit(_RETURN, rule.action)
        out.place(following)
        if not rule.conditions:
            return
    out.emit(_RETURN, default)


def _compare(out: _Assembler, condition: Condition, otherwise: int) -> None:
    """Go on when it holds, else to `otherwise`. The accumulator loses what it had."""
    low_at = _ARGUMENTS + 8 * condition.index  # both machines are little-endian
    high, low = condition.value >> 32, condition.value & 0xFFFF_FFFF
    operator, holds = condition.operator, out.new_label()
    out.emit(_LOAD, low_at + 4)
    if operator == "MASKED_EQ":
        out.emit(_AND, high)
        out.jump_unless(_JEQ, condition.second >> 32, otherwise)
        out.emit(_LOAD, low_at)
        out.emit(_AND, low)
        out.jump_unless(_JEQ, condition.second & 0xFFFF_FFFF, otherwise)
    elif operator == "MASKED_NE":
        out.emit(_AND, high)
        out.jump_unless(_JEQ, condition.second >> 32, holds)
        out.emit(_LOAD, low_at)
        out.emit(_AND, low)
        out.jump_if(_JEQ, condition.second & 0xFFFF_FFFF, otherwise)
    elif operator == "EQ":
        out.jump_unless(_JEQ, high, otherwise)
        out.emit(_LOAD, low_at)
        out.jump_unless(_JEQ, low, otherwise)
    elif operator == "NE":
        out.jump_unless(_JEQ, high, holds)
        out.emit(_LOAD, low_at)
        out.jump_if(_JEQ, low, otherwise)
    elif operator in ("GT", "GE"):
        out.jump_if(_JGT, high, holds)
        out.jump_unless(_JEQ, high, otherwise)
        out.emit(_LOAD, low_at)
        out.jump_unless(_JGT if operator == "GT" else _JGE, low, otherwise)
    else:  # LT, LE
        out.jump_if(_JGT, high, otherwise)
        out.jump_unless(_JEQ, high, holds)
        out.emit(_LOAD, low_at)
        out.jump_if(_JGE if operator == "LT" else _JGT, low, otherwise)
    out.place(holds)


class _Assembler:
    """Instructions with forward labels. A conditional jump reaches 255 instructions, a plain one any: so a far jump is
    a conditional one over a plain one.
    """

    def __init__(self) -> None:
        self._code: list[tuple[int, int, int, int]] = []
        self._places: list[int] = []
        self._jumps: list[tuple[int, int]] = []

    def new_label(self) -> int:
        self._places.append(-1)
        return len(self._places) - 1

    def place(self, label: int) -> None:
        """The label means the next instruction."""
        self._places[label] = len(self._code)

    def emit(self, code: int, value: int) -> None:
        self._code.append((code, 0, 0, value))

    def jump_if(self, test: int, value: int, label: int) -> None:
        self._code.append((test, 0, 1, value))
        self._jump(label)

    def jump_unless(self, test: int, value: int, label: int) -> None:
        self._code.append((test, 1, 0, value))
        self._jump(label)

    def _jump(self, label: int) -> None:
        self._jumps.append((len(self._code), label))
        self._code.append((_JUMP, 0, 0, 0))

    def assemble(self) -> bytes:
        if len(self._code) > _LARGEST:
            raise ValueError(f"the filter has {len(self._code)} instructions, the kernel takes {_LARGEST}")
        for at, label in self._jumps:
            self._code[at] = (_JUMP, 0, 0, self._places[label] - at - 1)
        # struct sock_filter: code, jump if true, jump if false, value
        return b"".join(struct.pack("=HBBI", *instruction) for instruction in self._code)
