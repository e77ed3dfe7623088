"""Every option that takes a time takes it in the same way, and every time that is shown has a unit."""

import re

import click
import pytest
from click.testing import CliRunner

from lastcall.cli.commands import COMMANDS, cli
from lastcall.cli.node import checked_periods
from lastcall.cli.options import Seconds
from lastcall.world.durations import format_duration, parse_duration, parse_seconds

TIMES = [
    ("30s", 30), ("1m30s", 90), ("500ms", 0.5), ("30", 30), ("0.5", 0.5), ("1.5s", 1.5), ("2h", 7200),
    ("1h2m3s4ms", 3723.004), ("1m", 60), ("1M30S", 90), (" 5s ", 5), ("0", 0), ("0s", 0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "seconds"), TIMES)
def test_a_time_is_read_as_people_write_it(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)
    assert Seconds(0).convert(text, None, None) == pytest.approx(seconds)


def test_a_propagation_takes_the_same_times():
    assert parse_seconds("1m30s") == 90


@pytest.mark.parametrize("text", ["", " ", "soon", "s", "5x", "30s1m", "1m 2m", "1mm", "inf", "nan", "--5", "1e999"])
def test_what_is_no_time_is_refused_with_what_would_do(text):
    with pytest.raises(click.BadParameter, match="is not a time: write 30s, 1m30s, 500ms or plain seconds, from 0s"):
        Seconds(0).convert(text, None, None)


def test_limits_are_told_with_their_units():
    with pytest.raises(click.BadParameter, match=r"2h is too long: .* from 100ms to 1h"):
        Seconds(0.1, 3600).convert("2h", None, None)
    with pytest.raises(click.BadParameter, match="50ms is too short"):
        Seconds(0.1, 3600).convert("50ms", None, None)
    with pytest.raises(click.BadParameter, match="-1 is too short"):
        Seconds(0).convert("-1", None, None)
    with pytest.raises(click.BadParameter, match=r"0s is too short: .* more than 0 and at most 24h"):
        Seconds().convert("0s", None, None)


def test_whole_seconds_are_integers_and_refuse_a_part_of_one():
    found = Seconds(0, whole=True).convert("1m30s", None, None)
    assert (found, type(found)) == (90, int)
    with pytest.raises(click.BadParameter, match="1500ms is not a whole number of seconds"):
        Seconds(0, whole=True).convert("1500ms", None, None)


@pytest.mark.parametrize("seconds", [0, 0.001, 0.5, 1, 1.5, 30, 60, 90, 300, 3600, 5400, 86400, 2**31 - 1])
def test_a_time_that_is_told_is_read_as_the_same_time(seconds):
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds)
    assert re.search("[a-z]$", format_duration(seconds))


def test_groups_of_a_shutdown_take_times():
    assert checked_periods(30, 10, ("1000=1m", "0=20")) == [(0, 20), (1000, 60)]


def _options(command, path=()):
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from _options(command.get_command(context, name), (*path, name))
        return
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield path, parameter


def test_every_option_with_a_time_has_this_type_and_a_unit_in_its_default():
    found = {(path, option.name): option for path, option in _options(cli) if isinstance(option.type, Seconds)}
    assert len(found) >= 10
    for (path, name), option in found.items():
        shown = option.show_default if isinstance(option.show_default, str) else option.default
        assert option.metavar == "TIME", (path, name)
        if isinstance(shown, str):
            assert re.match(r"\d+(\.\d+)?(h|m|s|ms)\b", shown), (path, name, shown)
        else:
            assert shown is None or not isinstance(shown, int | float), (path, name, shown)
    assert not [(path, option.name) for path, option in _options(cli) if "SECONDS" in (option.metavar or "")]


@pytest.mark.parametrize("command", ["run", "up", "down", "rollout"])
def test_help_shows_the_default_of_a_timeout_with_its_unit(command):
    assert command in COMMANDS
    text = " ".join(CliRunner().invoke(cli, [command, "--help"]).output.split())
    assert re.search(r"--timeout TIME .*?\[default: \d+(s|m|h)", text)
