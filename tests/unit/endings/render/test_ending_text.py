"""The text of the story: golden masters at 80 and 120 columns. `LASTCALL_UPDATE_GOLDEN=1` writes them anew."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from lastcall.endings.render.plain import plain_text
from lastcall.endings.story import Ending
from lastcall.records import kinds as k

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["graceful", "sigkill-1.36", "sigkill-1.23", "graceful-explain", "both"])
def test_the_text_is_the_golden_one(tapes, name, width):
    tape_names = ["graceful", "sigkill-1.36"] if name == "both" else [name.removesuffix("-explain")]
    endings = [tapes[each]().ending() for each in tape_names]
    text = plain_text(endings, width, explain=name.endswith("-explain"))
    golden = GOLDEN / f"{name}-{width}.txt"
    if os.environ.get("LASTCALL_UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


def test_a_hook_that_its_time_did_not_suffice_for_is_told_in_words(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted(2)
    tape.hook(0.006, 2.0, "outlived", budget=2, handler="sleep")
    tape.stop(2.01, 2, deducted=2, floor=True)
    tape.exit(2.5, 0)
    tape.over(2.51)
    text = plain_text([tape.ending()], 200)
    assert "; preStop sleep still ran when its time was over, after 2.0 s" in text


@pytest.mark.parametrize("width", [40, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_console_and_plain_text_has_no_escapes(tapes, width):
    text = plain_text([make().ending() for make in tapes.values()], width, explain=True)
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text


def test_what_a_container_prints_cannot_reach_the_terminal(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.output(0.5, "\x1b[2J\x1b]0;owned\x07 [bold]not markup[/bold]\r\n")
    tape.exit(1.0, 0)
    tape.over(1.01)
    text = plain_text([tape.ending()], 100)
    assert "\x1b" not in text
    assert "\r" not in text
    assert "\\x1b[2J" in text
    assert "[bold]not markup[/bold]" in text


def test_a_node_that_died_midway_is_told_in_text_without_a_bar(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.killing(30)
    tape.add(1.4, "init", k.PROCESS_DIED, role="node-1", pid=4, exitCode=None, signal=9)
    text = plain_text([tape.ending()], 100)
    assert "how it ended is not known" in text
    assert "node-1 (pid 4) killed by SIGKILL" in text
    assert "The removal of the object was not seen." in text


def test_a_pod_that_had_ended_by_itself_says_so_and_shows_no_lanes(new_tape):
    tape = new_tape()
    tape.started(at=-4.0)
    tape.exit(-2.3, 0)
    tape.accepted(0)
    tape.add(0.002, "client", k.POD_GONE_SEEN, resourceVersion="152")
    text = plain_text([tape.ending()], 100)
    assert "default/web had already ended" in text
    assert "side by side" not in text
    assert "grace 0 s  " not in text


def named(ending: Ending, name: str) -> Ending:
    return replace(ending, pod=replace(ending.pod, name=name, uid=name))


def test_replicas_that_ended_alike_are_told_once_where_their_steps_were_seen(tapes):
    graceful, killed = tapes["graceful"]().ending(), tapes["sigkill-1.36"]().ending()
    those = [named(graceful, "web-x"), named(graceful, "web-y"), named(killed, "web-z"), named(graceful, "api-x")]
    short = plain_text(those, 100, with_steps=False)
    assert "web-y ended alike" in short and short.count("ended gracefully") == 2 + 3
    assert "ended alike" not in plain_text(those, 100)
    assert "2 other Pods ended alike" in plain_text([*those, named(graceful, "web-u")], 100, with_steps=False)
