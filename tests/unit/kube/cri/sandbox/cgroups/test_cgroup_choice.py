"""Which control group of version 2 is used, and what systemd is asked."""

from typing import Any

import pytest

from lastcall.kube.cri.sandbox.cgroups.choice import NOT_DELEGATED, SHARED, Group, Seen, choose, needs_linger, slice_of
from lastcall.kube.cri.sandbox.cgroups.systemd import call

POINT = "/sys/fs/cgroup"
ROOT = Group(POINT, hands_down=True, writable=True)
SLICE = Group(f"{POINT}/system.slice", hands_down=True, writable=True)
USER = Group(f"{POINT}/user.slice/user-1000.slice/user@1000.service", delegated=True, hands_down=True, writable=True)
APP = Group(f"{USER.path}/app.slice", hands_down=True, writable=True)
REFUSED = "systemd cannot be asked: Access denied"


def own(path: str, **fields: Any) -> Group:
    return Group(path, **{"writable": True} | fields)


SERVICE = own(f"{SLICE.path}/ci.service")
SCOPE = own(f"{APP.path}/run-1.scope", delegated=True)
SESSION = own(f"{POINT}/user.slice/user-1000.slice/session-1.scope", writable=False)
WITH_LEAF = own(f"{SLICE.path}/ci.service", delegated=True, hands_down=True)

CASES: dict[str, tuple[Seen, tuple[str, str, str]]] = {
    "a delegated scope that is ours alone": (
        Seen([SCOPE, APP, USER, ROOT], alone=True, systemd=True),
        ("below", SCOPE.path, ""),
    ),
    "a delegated scope with a shell in it": (Seen([SCOPE, APP, USER, ROOT], systemd=True), ("scope", "", "")),
    "a delegated scope without memory": (
        Seen([SCOPE, APP, USER, ROOT], alone=True, missing=["memory"], systemd=True),
        ("scope", "", ""),
    ),
    "a leaf of a delegated service that hands down": (
        Seen([own(f"{WITH_LEAF.path}/leaf"), WITH_LEAF, SLICE, ROOT], systemd=True),
        ("beside", WITH_LEAF.path, ""),
    ),
    "a delegated service that is root's": (
        Seen([Group(SERVICE.path, delegated=True), SLICE, ROOT], alone=True, systemd=True),
        ("scope", "", ""),
    ),
    "a service of root that is not delegated": (
        Seen([SERVICE, SLICE, ROOT], alone=True, systemd=True),
        ("scope", "", ""),
    ),
    "the same, and systemd refuses": (
        Seen([SERVICE, SLICE, ROOT], alone=True, systemd=True, refused=REFUSED),
        ("below", SERVICE.path, ""),
    ),
    "the same with others, and systemd refuses": (
        Seen([SERVICE, SLICE, ROOT], systemd=True, refused=REFUSED),
        ("none", "", REFUSED),
    ),
    "a session": (Seen([SESSION, ROOT], systemd=True), ("scope", "", "")),
    "a session, and systemd refuses": (Seen([SESSION, ROOT], systemd=True, refused=REFUSED), ("none", "", REFUSED)),
    "a program of the user's systemd, which owns the groups above": (
        Seen([own(f"{APP.path}/terminal.scope"), APP, USER, ROOT], alone=True, systemd=True),
        ("scope", "", ""),
    ),
    "a process that is in a slice": (Seen([SLICE, ROOT], alone=True, systemd=True), ("scope", "", "")),
    "a process that is in a slice, and systemd refuses": (
        Seen([SLICE, ROOT], alone=True, systemd=True, refused=REFUSED),
        ("none", "", REFUSED),
    ),
    "systemd, and version 1 has the controllers": (
        Seen([SESSION, ROOT], missing=["memory", "pids"], limits_here=False, systemd=True),
        ("none", "", "cgroup v2 has no memory and no pids controller here"),
    ),
    "no systemd, the nearest group that hands down": (
        Seen([own(f"{POINT}/a/b"), own(f"{POINT}/a", hands_down=True), ROOT]),
        ("beside", f"{POINT}/a", ""),
    ),
    "no systemd, and the group above is root's": (
        Seen([own(f"{POINT}/a"), Group(POINT, hands_down=True)], alone=True),
        ("below", f"{POINT}/a", ""),
    ),
    "no systemd to be seen, but a slice of it": (
        Seen([own(f"{SLICE.path}/docker-1.scope"), SLICE], alone=True),
        ("below", f"{SLICE.path}/docker-1.scope", ""),
    ),
    "a container whose group is root's": (Seen([Group(POINT)], alone=True), ("none", "", NOT_DELEGATED)),
    "a container with other processes": (Seen([own(POINT)]), ("none", "", SHARED)),
    "a group that cannot be seen here": (
        Seen([]),
        ("none", "", "this process's cgroup is outside of what is mounted here"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_group_of_a_cluster_is_chosen_by_who_may_write_where(case: str) -> None:
    seen, wanted = CASES[case]
    choice = choose(seen)
    assert (choice.kind, choice.path, choice.why) == wanted


MANAGER = "/user.slice/user-1000.slice/user@1000.service"


@pytest.mark.parametrize(
    ("own_group", "manager", "wanted"),
    [
        ("/user.slice/user-0.slice/session-3.scope", "", "user-0.slice"),
        ("/system.slice/ci.service", "", "system.slice"),
        (f"{MANAGER}/app.slice/terminal.scope", "", "user-1000.slice"),
        (f"{MANAGER}/app.slice/app-less.slice/terminal.scope", MANAGER, "app-less.slice"),
        ("/user.slice/user-1000.slice/session-3.scope", MANAGER, ""),
        (MANAGER, MANAGER, ""),
        ("/init.scope", "", ""),
        ("/", "", ""),
    ],
)
def test_a_scope_is_in_the_slice_of_the_process_where_the_same_systemd_has_it(
    own_group: str, manager: str, wanted: str
) -> None:
    assert slice_of(own_group, manager) == wanted


def test_an_ordinary_user_asks_their_own_systemd_and_root_the_machine_s() -> None:
    users = call("lastcall-a.scope", 4711, "", 1000)
    roots = call("lastcall-a.scope", 4711, "system.slice", 0)
    assert "--address=unix:path=/run/user/1000/bus" in users and "--system" in roots
    text = " ".join(roots)
    assert "lastcall-a.scope fail 7 " in text and "PIDs au 1 4711" in text and "Delegate b true" in text
    assert "Slice s system.slice" in text and text.endswith(" 0")
    assert "lastcall-a.scope fail 6 " in " ".join(users) and "Slice" not in " ".join(users)


@pytest.mark.parametrize(
    ("own_group", "uid", "in_scope", "wanted"),
    [
        ("/user.slice/user-1000.slice/session-3.scope", 1000, True, False),
        ("/user.slice/user-1000.slice/session-3.scope", 1000, False, False),
        (f"{MANAGER}/app.slice/terminal.scope", 1000, True, True),
        (f"{MANAGER}/app.slice/run-1.scope", 1000, False, True),
        ("/user.slice/user-0.slice/session-1.scope", 1000, True, True),
        ("/system.slice/ci.service", 1000, True, True),
        ("/system.slice/ci.service", 1000, False, False),
        ("/user.slice/user-0.slice/user@0.service/app.slice/run-1.scope", 0, False, True),
        ("/user.slice/user-0.slice/session-1.scope", 0, True, False),
    ],
)
def test_a_cluster_ends_at_logout_where_the_user_s_systemd_has_it_and_no_session_keeps_that(
    own_group: str, uid: int, in_scope: bool, wanted: bool
) -> None:
    assert needs_linger(own_group, uid, in_scope=in_scope) == wanted
