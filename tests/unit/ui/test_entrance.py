"""Who may come in."""

from dataclasses import replace

import pytest

from lastcall.ui.entrance import POLICY, TOKEN_SECONDS, Asked, Entrance

ENTRANCE = Entrance(8123, token="t" * 43, session="s" * 43)
OWN = Asked("GET", "127.0.0.1:8123", cookie="s" * 43)


def test_a_token_is_good_once_and_another_takes_its_place() -> None:
    spent: list[str] = []
    entrance = Entrance(1, on_spent=lambda: spent.append("spent"))
    first = entrance.token
    assert not entrance.spend("") and not entrance.spend(first[:-1]) and not entrance.spend("é")
    assert entrance.spend(first) and not entrance.spend(first)
    assert spent == ["spent"] and entrance.token != first and entrance.link.endswith(f"/#token={entrance.token}")


def test_a_token_is_good_for_a_minute_and_one_that_comes_too_late_is_replaced() -> None:
    now, spent = [100.0], list[str]()
    entrance = Entrance(1, on_spent=lambda: spent.append("spent"), now=lambda: now[0])
    first = entrance.token
    now[0] += TOKEN_SECONDS + 0.1
    assert not entrance.spend("guessed") and entrance.token == first
    assert not entrance.spend(first)
    assert spent == ["spent"] and entrance.token != first
    now[0] += TOKEN_SECONDS
    assert entrance.spend(entrance.token)


def test_the_cookie_s_name_has_the_port() -> None:
    assert ENTRANCE.cookie_name == "lastcall-8123"


@pytest.mark.parametrize(
    "host", ["", "localhost:8123", "127.0.0.1", "127.0.0.1:8124", "evil.example:8123", "[::1]:8123"]
)
def test_only_the_exact_host_is_answered(host: str) -> None:
    assert ENTRANCE.refusal(replace(OWN, host=host))
    assert not ENTRANCE.refusal(OWN)


@pytest.mark.parametrize(
    "origin", ["null", "http://localhost:8123", "https://127.0.0.1:8123", "http://127.0.0.1:81230"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_page_is_refused_whatever_it_asks(origin: str, method: str) -> None:
    assert ENTRANCE.refusal(replace(OWN, method=method, origin=origin))


def test_what_writes_and_what_opens_a_socket_names_its_origin() -> None:
    for asked in (replace(OWN, method="POST"), replace(OWN, method="DELETE"), replace(OWN, socket=True)):
        assert ENTRANCE.refusal(asked)
        assert not ENTRANCE.refusal(replace(asked, origin="http://127.0.0.1:8123"))


def test_a_browser_is_known_by_its_cookie_unless_another_page_makes_it_ask() -> None:
    assert ENTRANCE.knows(OWN) and ENTRANCE.knows(replace(OWN, site="same-origin"))
    assert not ENTRANCE.knows(replace(OWN, cookie="")) and not ENTRANCE.knows(replace(OWN, cookie="é"))
    assert not ENTRANCE.knows(replace(OWN, site="cross-site")) and not ENTRANCE.knows(replace(OWN, site="same-site"))


def test_the_policy_lets_nothing_in_from_elsewhere() -> None:
    assert POLICY.startswith("default-src 'none'") and "unsafe" not in POLICY and "http" not in POLICY


def test_no_text_becomes_a_script_and_no_form_leaves_the_page() -> None:
    assert "require-trusted-types-for 'script'" in POLICY and "form-action 'self'" in POLICY
