"""The options of `lastcall trace --serve`: what they mean, and what is refused."""

import importlib.util

import pytest
from click.testing import CliRunner

from lastcall.cli.trace.command import trace
from lastcall.cli.trace.serve_options import DEFAULT_LISTEN, ServeOptions
from lastcall.cli.trace.serving import asked_for
from lastcall.errors import UserError
from lastcall.trace.exporting import addresses


def given(**values):
    return ServeOptions(**{"serve": DEFAULT_LISTEN, "otlp_endpoint": "", "events": False, "lease": "",
                           "most_workloads": 200, **values})  # fmt: skip


def test_without_a_value_it_listens_on_loopback():
    assert DEFAULT_LISTEN == addresses.DEFAULT_LISTEN
    assert asked_for(given(), "me").listen.loopback
    assert not asked_for(given(serve="0.0.0.0:9464"), "me").listen.loopback


def test_a_lease_is_a_namespace_and_a_name():
    assert asked_for(given(lease="lastcall/lastcall-trace"), "me").lease == ("lastcall", "lastcall-trace")
    assert asked_for(given(), "me").lease is None


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"serve": ":9464"}, "--serve: "),
        ({"otlp_endpoint": "http://collector:4318"}, "--otlp-endpoint: "),
        ({"lease": "lastcall-trace"}, "--lease 'lastcall-trace' is not NAMESPACE/NAME; fix: "),
        ({"lease": "a/b/c"}, "is not NAMESPACE/NAME"),
        ({"lease": "a/B"}, "is not NAMESPACE/NAME"),
    ],
)
def test_a_bad_value_is_the_user_s_error(values, said):
    with pytest.raises(UserError, match="fix: ") as error:
        asked_for(given(**values), "me")
    assert said in str(error.value)


def test_without_the_extra_the_option_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'lastcall\[otel\]'"):
        asked_for(given(otlp_endpoint="http://127.0.0.1:4318"), "me")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--events"], "--events needs --serve"),
        (["--otlp-endpoint", "http://127.0.0.1:4318"], "--otlp-endpoint needs --serve"),
        (["--lease", "a/b"], "--lease needs --serve"),
        (["--serve", "--count", "1"], "--serve runs until a signal"),
        (["--serve=127.0.0.1:0", "--timeout", "5"], "--serve runs until a signal"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments, said):
    result = CliRunner().invoke(trace, arguments)
    assert result.exit_code == 2
    assert said in result.output
