"""Filters, run by a small interpreter of the kernel's BPF."""

import base64
import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.cri.sandbox.seccomp import bpf, default_profile
from lastcall.kube.cri.sandbox.seccomp.bpf import ALLOW, USER_NOTIF, Condition, Rule, compile_filter, errno_action
from lastcall.kube.cri.sandbox.seccomp.container import container_filter
from lastcall.kube.cri.sandbox.seccomp.profile import ProfileError, compile_profile, load_profile
from lastcall.kube.cri.sandbox.seccomp.syscalls import MACHINES, system_calls
from lastcall.kube.cri.sandbox.shim import pause
from lastcall.kube.cri.sandbox.shim.single_id import filter as single_id
from lastcall.world import linux, privileges

NONE: frozenset[str] = frozenset()
EPERM, ENOSYS = errno_action(1), errno_action(38)
ALL = (1 << 64) - 1


def run(program: bytes, number: int, *arguments: int, architecture: int) -> int:
    """What the kernel would answer. Fails for everything its checker would refuse."""
    data = struct.pack("=iIQ6Q", number if number < 1 << 31 else number - (1 << 32), architecture, 0, *_six(arguments))
    code = list(struct.iter_unpack("=HBBI", program))
    assert 0 < len(code) <= 4096
    accumulator = at = 0
    while True:
        operation, yes, no, value = code[at]
        at += 1
        if operation == 0x20:
            assert value % 4 == 0
            assert value < 64
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif operation == 0x54:
            accumulator &= value
        elif operation == 0x05:
            at += value
        elif operation in (0x15, 0x25, 0x35):
            holds = {0x15: accumulator == value, 0x25: accumulator > value, 0x35: accumulator >= value}[operation]
            at += yes if holds else no
        else:
            assert operation == 0x06
            return value
        assert at < len(code), "a program ends with an answer"


def _six(arguments: tuple[int, ...]) -> list[int]:
    return [*(argument & ALL for argument in arguments), *[0] * (6 - len(arguments))]


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return request.param


def answers(program: bytes, machine: str) -> Any:
    numbers = system_calls(machine)

    def answer(call: str | int, *arguments: int) -> int:
        number = call if isinstance(call, int) else numbers[call]
        return run(program, number, *arguments, architecture=bpf.AUDIT_ARCH[machine])

    return answer


# -- the assembler -----------------------------------------------------------------------------------------------------

OPERATIONS = {
    "EQ": lambda given, value, second: given == value,
    "NE": lambda given, value, second: given != value,
    "LT": lambda given, value, second: given < value,
    "LE": lambda given, value, second: given <= value,
    "GT": lambda given, value, second: given > value,
    "GE": lambda given, value, second: given >= value,
    "MASKED_EQ": lambda given, value, second: given & value == second,
    "MASKED_NE": lambda given, value, second: given & value != second,
}
INTERESTING = (0, 1, 2, 0xFFFF_FFFE, 0xFFFF_FFFF, 0x1_0000_0000, 0x1_0000_0001, 0x2_0000_0000, ALL - 1, ALL)


@pytest.mark.parametrize("operator", OPERATIONS)
def test_comparisons_of_64_bits_are_made_of_two_of_32(operator: str) -> None:
    for value in INTERESTING:
        for second in (0, value) if operator.startswith("MASKED") else (0,):
            rule = Rule(ALLOW, [Condition(2, operator, value, second)])
            program = compile_filter("x86_64", {7: [rule]}, EPERM, other_architecture=ENOSYS)
            for given in INTERESTING:
                expected = ALLOW if OPERATIONS[operator](given, value, second) else EPERM
                seen = run(program, 7, 0, 0, given, architecture=bpf.AUDIT_ARCH["x86_64"])
                assert seen == expected, f"{given:#x} {operator} {value:#x} {second:#x}"


def test_the_first_rule_that_fits_counts_and_all_its_conditions_must_hold() -> None:
    rules = [
        Rule(errno_action(5), [Condition(0, "EQ", 1), Condition(1, "GT", 10)]),
        Rule(errno_action(6), [Condition(0, "EQ", 1)]),
        Rule(ALLOW),
    ]
    program = compile_filter("x86_64", {3: rules}, EPERM, other_architecture=ENOSYS)
    architecture = bpf.AUDIT_ARCH["x86_64"]
    seen = [run(program, 3, *given, architecture=architecture) for given in ((1, 11), (1, 10), (2, 11))]
    assert seen == [errno_action(5), errno_action(6), ALLOW]
    assert run(program, 4, architecture=architecture) == EPERM


def test_every_number_finds_its_own_answer_among_many() -> None:
    choice = random.Random(7)
    for _ in range(20):
        rules = {
            number: [Rule(errno_action(number % 90 + 2))]
            for number in choice.sample(range(600), choice.randrange(1, 500))
        }
        program = compile_filter("x86_64", rules, ALLOW, other_architecture=ENOSYS)
        for number in range(600):
            expected = rules[number][0].action if number in rules else ALLOW
            assert run(program, number, architecture=bpf.AUDIT_ARCH["x86_64"]) == expected


def test_a_filter_that_is_too_long_for_the_kernel_is_refused_here() -> None:
    rules = {number: [Rule(ALLOW, [Condition(0, "EQ", value) for value in range(9)])] for number in range(300)}
    with pytest.raises(ValueError, match="instructions, the kernel takes 4096"):
        compile_filter("x86_64", rules, EPERM, other_architecture=ENOSYS)
    with pytest.raises(ValueError, match="no seccomp filters for m68k"):
        compile_filter("m68k", {}, EPERM, other_architecture=ENOSYS)


# -- profiles ----------------------------------------------------------------------------------------------------------


def test_the_tables_hold_the_numbers_of_the_kernel_s_headers() -> None:
    x86, arm = system_calls("x86_64"), system_calls("aarch64")
    assert [x86[name] for name in ("read", "execve", "setuid", "openat", "seccomp", "rseq")] == [
        0,
        59,
        105,
        257,
        317,
        334,
    ]
    assert [arm[name] for name in ("io_setup", "read", "execve", "setuid", "fchown", "rseq")] == [
        0,
        63,
        221,
        146,
        55,
        293,
    ]
    for table in (x86, arm):
        assert [table[name] for name in ("clone3", "openat2", "futex_wait", "mseal")] == [435, 437, 455, 462]
    assert "open" not in arm


def test_runtime_default_lets_programs_work_and_forbids_what_runs_machines(machine: str) -> None:
    answer = answers(compile_profile(default_profile.default_profile(), machine, NONE), machine)
    numbers = system_calls(machine)
    for call in ("read", "execve", "setuid", "fchown", "futex", "prctl", "seccomp", "statx", "close_range"):
        assert answer(call) == ALLOW, call
    forbidden = "mount umount2 unshare setns pivot_root bpf perf_event_open keyctl add_key kexec_load reboot"
    for call in f"{forbidden} userfaultfd swapon settimeofday open_by_handle_at io_uring_setup personality".split():
        assert answer(call, 5) == EPERM, call
    assert answer("clone", 0x0001_1200) == ALLOW, "a thread"
    assert answer("clone", 0x1000_0000 | 17) == EPERM, "a user namespace"
    assert answer("clone3") == ENOSYS, "glibc then takes clone, whose flags can be seen"
    assert (answer("socket", 2), answer("socket", 40)) == (ALLOW, EPERM)
    assert answer("personality", 0xFFFF_FFFF) == ALLOW
    assert answer(max(numbers.values()) + 1) == ENOSYS, "newer than this profile"
    assert answer(0x3FFF) == ENOSYS


def test_a_capability_opens_what_it_is_for(machine: str) -> None:
    profile = default_profile.default_profile()
    admin = answers(compile_profile(profile, machine, frozenset({"CAP_SYS_ADMIN"})), machine)
    for call in ("mount", "unshare", "setns", "bpf", "clone3"):
        assert admin(call, 0x1000_0000) == ALLOW, call
    assert admin("clone", 0x1000_0000) == ALLOW
    assert admin("reboot") == EPERM
    chroot = answers(compile_profile(profile, machine, frozenset({"CAP_SYS_CHROOT"})), machine)
    assert (chroot("chroot"), chroot("mount")) == (ALLOW, EPERM)


def test_calls_of_another_architecture_fail() -> None:
    program = compile_profile(default_profile.default_profile(), "x86_64", NONE)
    i386 = 0x4000_0003
    assert run(program, 11, architecture=i386) == ENOSYS
    assert run(program, 0x4000_0000 | 59, architecture=bpf.AUDIT_ARCH["x86_64"]) == ENOSYS, "x32"


KILL_9 = {"index": 1, "value": 9, "op": "SCMP_CMP_EQ"}


def test_a_profile_in_docker_s_json_is_followed(machine: str) -> None:
    profile = {
        "defaultAction": "SCMP_ACT_ALLOW",
        "architectures": ["SCMP_ARCH_X86_64"],
        "syscalls": [
            {"names": ["mkdirat", "not_a_call"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28},
            {
                "name": "kill",
                "action": "SCMP_ACT_KILL_PROCESS",
                "args": [{"index": 1, "value": 9, "op": "SCMP_CMP_EQ"}],
            },
            {"names": ["getpid"], "action": "SCMP_ACT_LOG", "includes": {"caps": ["CAP_KILL"]}},
            {"names": ["getppid"], "action": "SCMP_ACT_TRAP", "excludes": {"arches": ["amd64", "arm64"]}},
        ],
    }
    answer = answers(compile_profile(profile, machine, NONE), machine)
    assert answer("mkdirat") == errno_action(28)
    assert (answer("kill", 1, 9), answer("kill", 1, 15)) == (bpf.KILL_PROCESS, ALLOW)
    assert (answer("getpid"), answer("getppid"), answer(5000)) == (ALLOW, ALLOW, ALLOW)
    assert answers(compile_profile(profile, machine, frozenset({"CAP_KILL"})), machine)("getpid") == bpf.LOG


BAD: dict[str, tuple[Any, str]] = {
    "no object": ([], "not a JSON object"),
    "no default": ({}, "invalid seccomp action None in defaultAction"),
    "an action nobody knows": ({"defaultAction": "SCMP_ACT_MAYBE"}, "invalid seccomp action 'SCMP_ACT_MAYBE'"),
    "calls that are no list": ({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": "read"}, "syscalls is not a list"),
    "a call that is no object": ({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [1]}, "is not an object"),
    "an operator nobody knows": (
        {
            "defaultAction": "SCMP_ACT_ALLOW",
            "syscalls": [
                {"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 9, "op": "x", "value": 1}]}
            ],
        },
        "invalid seccomp argument condition",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_profile_is_named(case: str) -> None:
    profile, words = BAD[case]
    with pytest.raises(ProfileError, match=words):
        compile_profile(profile, "x86_64", NONE)


def test_a_profile_s_file_is_read_or_named(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    with pytest.raises(ProfileError, match=f'cannot load seccomp profile "{path}": open {path}: no such file'):
        load_profile(str(path))
    path.write_text("{")
    with pytest.raises(ProfileError, match="decoding seccomp profile failed"):
        load_profile(str(path))
    path.write_text('{"defaultAction": "SCMP_ACT_ALLOW"}')
    found = container_filter("Localhost", str(path), NONE, single_user_id=False)
    assert found["name"] == f"Localhost {path}"
    assert base64.b64decode(found["program"])


def test_a_filter_is_made_once_for_each_set_of_capabilities() -> None:
    first = container_filter("RuntimeDefault", "", NONE, single_user_id=False)
    assert container_filter("RuntimeDefault", "", NONE, single_user_id=False)["program"] is first["program"]
    assert container_filter("Unconfined", "", NONE, single_user_id=False) == {"name": "Unconfined", "program": ""}
    json.dumps(first)


# -- one user id -------------------------------------------------------------------------------------------------------

WITH = privileges.capability_mask(("CHOWN", "SETUID", "SETGID"))


def test_calls_that_name_other_ids_are_asked_about_and_own_ids_are_the_kernel_s(machine: str) -> None:
    answer = answers(single_id.make_filter(machine, WITH), machine)
    unchanged = 0xFFFF_FFFF
    assert answer("setuid", 0) == ALLOW
    assert answer("setuid", 101) == USER_NOTIF
    assert answer("setresuid", unchanged, unchanged, 0) == ALLOW
    assert answer("setresuid", ALL, 0, 101) == USER_NOTIF, "-1 of a 64-bit register too"
    assert answer("setgroups", 0, 0) == USER_NOTIF
    assert answer("fchownat", 3, 0, 0, 0) == ALLOW
    assert answer("fchownat", 3, 0, unchanged, 5) == USER_NOTIF
    assert answer("fchown", 3, 5, unchanged) == USER_NOTIF
    assert answer("execve") == USER_NOTIF
    assert answer(single_id.HELPER_CALL) == USER_NOTIF
    assert (answer("getuid"), answer("unshare"), answer(9999)) == (ALLOW, ALLOW, ALLOW)


def test_without_the_capability_the_calls_fail_as_anywhere(machine: str) -> None:
    answer = answers(single_id.make_filter(machine, privileges.capability_mask(("SETGID",))), machine)
    assert (answer("setuid", 101), answer("fchown", 3, 5, 5), answer("setgid", 5)) == (EPERM, EPERM, USER_NOTIF)
    assert (answer("setuid", 0), answer("fchown", 3, 0, 0)) == (ALLOW, ALLOW)


def test_calls_of_32_bit_programs_go_to_the_kernel() -> None:
    program = single_id.make_filter("x86_64", WITH)
    assert run(program, 23, 101, architecture=0x4000_0003) == ALLOW


def test_a_profile_lets_the_program_through_that_changes_the_user(machine: str) -> None:
    profile = default_profile.default_profile()
    first = {"unshare": [Rule(ALLOW, [Condition(0, "EQ", 0x1000_0000)])], "16383": [Rule(ALLOW)]}
    answer = answers(compile_profile(profile, machine, NONE, first), machine)
    assert (answer("unshare", 0x1000_0000), answer("unshare", 0x1002_0000)) == (ALLOW, EPERM)
    assert (answer(0x3FFF), answer(0x3FFE), answer(0x4000)) == (ALLOW, ENOSYS, ENOSYS)


def test_the_program_is_an_executable_of_its_machine(machine: str) -> None:
    elf = single_id.helper_elf(machine)
    assert elf[:4] == b"\x7fELF"
    kind, of, _, entry = struct.unpack_from("<HHIQ", elf, 16)
    assert (kind, of) == (2, {"x86_64": 62, "aarch64": 183}[machine])
    assert entry == 0x40_0000 + 120
    assert len(single_id.HELPER_PATH) == len("/bin/sh"), "no longer than the shortest path it must replace"


def test_the_pause_may_wait_and_have_a_name_and_nothing_else(machine: str) -> None:
    answer = answers(pause.filter_program(machine), machine)
    assert answer("ppoll") == answer("execve") == answer("prctl", linux.PR_SET_NAME) == ALLOW
    refused = set(system_calls(machine)) - {*pause._ALLOWED, "prctl"}
    assert {answer(call) for call in refused} == {EPERM}
    assert answer("prctl", linux.PR_SET_DUMPABLE) == EPERM
