"""One rule set, two writers: what the netlink writer makes is what libnftables makes of the same rules."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from scenario_process import answer_of

SCENARIO = Path(__file__).with_name("service_rule_set.py")
GOLDEN = Path(__file__).parents[2] / "golden" / "service-rules"


def _library() -> bool:
    try:
        ctypes.CDLL("libnftables.so.1")
    except OSError:
        return False
    return True


# Not marked real_kernel: a machine without libnftables is none to complain about.
pytestmark = pytest.mark.skipif(not _library(), reason="the comparison needs libnftables")


@pytest.fixture(scope="module", params=ordinary_user.USERS)
def seen(request: pytest.FixtureRequest) -> dict[str, Any]:
    return answer_of(SCENARIO, request.param)


def blocks(listing: str) -> list[str]:
    """The sets, maps and chains of a listing; their order is that in which they were made."""
    return sorted(block.strip() for block in listing.split("\n\n"))


def test_the_rules_as_text_are_the_golden_ones(seen: dict[str, Any]) -> None:
    assert seen["text"] == (GOLDEN / "whole.nft").read_text()
    assert seen["step text"] == (GOLDEN / "step.nft").read_text()


def test_the_kernel_holds_the_golden_rules(seen: dict[str, Any]) -> None:
    """nft's own words for them differ from version to version; the comparison of the writers holds for all."""
    version = subprocess.run([shutil.which("nft") or "true", "--version"], capture_output=True, text=True, check=True)
    if "v1.0.6 " not in version.stdout:
        pytest.skip("the golden listing is nft 1.0.6's")
    assert seen["netlink"][0] == (GOLDEN / "whole.listing").read_text()


def test_both_writers_make_the_same_table(seen: dict[str, Any]) -> None:
    (whole, stepped), (other_whole, other_stepped) = seen["netlink"], seen["libnftables"]
    assert whole == other_whole
    assert blocks(stepped) == blocks(other_stepped)
    assert whole != stepped


def test_step_by_step_and_at_once_lead_to_the_same_table(seen: dict[str, Any]) -> None:
    for writer in ("netlink", "libnftables"):
        assert _cut(seen[writer][1]) == _cut(seen[f"{writer} replaced"])


def test_both_writers_make_the_same_ranges(seen: dict[str, Any]) -> None:
    assert seen["netlink ranges"] == seen["libnftables ranges"]
    whole, changed = (" ".join(listing.split()) for listing in seen["netlink ranges"])
    elements = "0.0.0.0, 10.0.0.0/24, 10.0.1.7-10.0.2.1, 224.0.0.0/3"
    assert f"elements = {{ {elements} }}" in whole
    assert "elements = { 10.0.0.0/24, 10.0.1.7-10.0.2.1 }" in changed


def _cut(listing: str) -> list[str]:
    return sorted(line.strip().rstrip("}").strip() for line in listing.replace(",", ",\n").splitlines())


def test_a_transaction_that_the_kernel_refuses_changes_nothing_and_says_which_part_it_was(seen: dict[str, Any]) -> None:
    """The step is asked for twice: what it deletes is not there any more."""
    assert seen["missing"] is False
    for writer in ("netlink", "libnftables"):
        assert seen[f"{writer} exists"] is True
        (error,) = seen[f"{writer} errors"]
        assert error.startswith("RuleError: ")
        assert "No such file or directory" in error
    assert "delete elements of" in seen["netlink errors"][0]
