"""How the differential tester counts what differs."""

from types import SimpleNamespace

import pytest
from differential import counting
from differential.comparing import Difference
from differential.counting import Counted, commit
from differential.request import Request

REQUEST = Request("POST", "/api/v1/pods", "v1 pods", "create")
STATUS = Difference(REQUEST, "status", "422 a", "201 Pod")
TEXT = Difference(REQUEST, "message", "a", "b", refused=True)


def counted(*requests: tuple[list[Difference], list[Difference]]) -> Counted:
    found = Counted()
    for everything, unwanted in requests:
        found.all.count(everything)
        found.unwanted.count(unwanted)
    return found


def test_a_request_is_counted_once_and_as_noticed_when_any_difference_is() -> None:
    found = counted(([STATUS, TEXT], [STATUS, TEXT]), ([TEXT], []), ([TEXT], [TEXT]), ([], []))
    assert (found.unwanted.noticed, found.unwanted.told) == (1, 1)
    assert (found.all.noticed, found.all.told) == (1, 2)


def test_limits_are_for_what_nobody_wants() -> None:
    assert counted(*[([STATUS], [])] * 50).held(100)
    assert not counted(([STATUS], [STATUS])).held(1000)
    assert counted(([STATUS], [STATUS])).held(1001)
    assert not counted(([TEXT], [TEXT])).held(100)


def test_the_table_has_both_figures_with_and_without_what_is_intended() -> None:
    head, line, noticed, told = counted(([STATUS], []), ([TEXT], [TEXT])).lines(200)
    assert head.count("|") == line.count("|") == 5
    assert noticed.endswith("| 0.1 % | 0, 0.00 % | 1, 0.50 % |")
    assert told.endswith("| 1.0 % | 1, 0.50 % | 1, 0.50 % |")


@pytest.mark.parametrize(("changed", "seed"), [("", "0123456789ab"), (" M src/a.py\n", "")])
def test_a_seed_that_nobody_chose_is_the_hash_of_a_commit_that_has_everything(
    changed: str, seed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(argv: list[str], **_: object) -> SimpleNamespace:
        return SimpleNamespace(returncode=0, stderr="", stdout=changed if "status" in argv else f"{seed}cdef\n")

    monkeypatch.setattr(counting.subprocess, "run", run)
    if seed:
        assert commit() == seed
    else:
        with pytest.raises(LookupError, match=r"src/a\.py"):
            commit()
