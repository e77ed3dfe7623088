"""critest on `lastcall runtime`: every spec passes that the kernel here allows; Debian's containerd 1.6 beside it.

`docs/engines.md` has the list of what passes. `LASTCALL_WRITE_DOCS=1` writes it anew, with containerd's results.
"""

import os
from pathlib import Path

import pytest
from engines.cri_machine import (
    Containerd,
    LastcallRuntime,
    Machine,
    Spec,
    missing_containerd,
    missing_critest,
    run_critest,
)

pytestmark = [
    pytest.mark.real_kernel,
    pytest.mark.skipif(bool(missing_critest()), reason=missing_critest()),
    pytest.mark.timeout(900),
]

NOT_HERE = "AppArmor|SELinux|NRI"
"""The kernel here has no AppArmor and no SELinux; NRI is containerd's and CRI-O's own interface for plugins."""
NEEDS_A_SHELL = "Security Context bucket runtime should support MaskedPaths"
"""Needs a shell that does not prefer a program of its own to the one that is masked: Debian's busybox, fetched."""
PAGE = Path(__file__).parent.parent.parent / "docs/engines.md"
BEGIN, END = "<!-- critest: written by tests/engines/test_critest.py -->\n", "<!-- critest: end -->\n"


def section(ours: dict[str, str], theirs: dict[str, str]) -> str:
    """The table of a page: spec, and whether it passes on each."""
    words = {"passed": "yes", "skipped": "not offered"}
    lines = ["| spec | lastcall | containerd 1.6.20 |", "|---|---|---|"]
    for name in sorted(ours):
        cells = (name.replace("|", "\\|"), *(words.get(each.get(name, ""), "no") for each in (ours, theirs)))
        lines.append(f"| {' | '.join(cells)} |")
    return BEGIN + "\n".join(lines) + "\n" + END


def states(specs: list[Spec]) -> dict[str, str]:
    return {each.name: each.state for each in specs if "benchmark" not in each.name}


def listed() -> set[str]:
    """The specs that the page says pass on lastcall."""
    text = PAGE.read_text()
    rows = text[text.index(BEGIN) : text.index(END)].splitlines()[3:]
    cells = (row.strip("| ").replace("\\|", "|").split(" | ") for row in rows)
    return {name for *parts, ours, _ in cells if ours == "yes" for name in [" | ".join(parts)]}


def test_every_spec_passes() -> None:
    with Machine() as machine:
        runtime = LastcallRuntime(machine)
        runtime.start()
        specs = run_critest(machine, runtime, skip=NOT_HERE)
        runtime.end()
        found = {each.name: each for each in specs if "benchmark" not in each.name}
        not_run = {NEEDS_A_SHELL} if machine.shell is None else set()
        left = [each for each in Path("/proc").glob("[0-9]*/cmdline") if str(runtime.root).encode() in _read(each)]
        assert not left, "no sandbox is left, and so nothing of the runtime"
    of_lastcall = {name: each for name, each in found.items() if not _is_left_out(name) and name not in not_run}
    assert len(of_lastcall) > 110
    wrong = {name: each.text[:2000] for name, each in of_lastcall.items() if each.state != "passed"}
    assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())
    if os.environ.get("LASTCALL_WRITE_DOCS"):
        _write({name: each.state for name, each in of_lastcall.items()})
    assert set(of_lastcall) == listed() - not_run, "LASTCALL_WRITE_DOCS=1 writes them into docs/engines.md"
    if not_run:
        pytest.skip(f"all others passed; {NEEDS_A_SHELL} was not run: Debian's busybox could not be fetched")


def test_what_containerd_passes_here_is_the_measure() -> None:
    """A few of each kind: that the registries, the images and the machine are good for another runtime, too."""
    if why := missing_containerd():
        pytest.skip(why)
    with Machine() as machine:
        runtime = Containerd(machine)
        runtime.start()
        focus = "public image with tag|HostPID|rshared|port mapping with host port|attach|RunAsUserName"
        specs = run_critest(machine, runtime, focus=focus, skip=NOT_HERE)
    ran = [each for each in specs if each.state != "skipped"]
    assert len(ran) == 6
    assert all(each.state == "passed" for each in ran), [each for each in ran if each.state != "passed"]


def test_the_page_is_one_table_with_a_row_for_each_spec() -> None:
    ours = {"b | c": "passed", "a": "failed", "d": "passed"}
    text = section(ours, {"a": "passed", "d": "skipped"})
    assert text.splitlines()[3:6] == ["| a | no | yes |", "| b \\| c | yes | no |", "| d | yes | not offered |"]
    assert len(listed()) > 110


def _is_left_out(name: str) -> bool:
    return any(word in name for word in NOT_HERE.split("|"))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _write(ours: dict[str, str]) -> None:
    with Machine() as machine:
        runtime = Containerd(machine)
        runtime.start()
        theirs = states(run_critest(machine, runtime, skip=NOT_HERE))
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN)], text[text.index(END) + len(END) :]
    PAGE.write_text(before + section(ours, theirs) + after)
