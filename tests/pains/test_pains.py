"""Ten of the pains on the real kernel, chosen by the commit's hash; all of them with --all-pains or `make pains`."""

import hashlib
import os
import subprocess
import warnings
from pathlib import Path

import pytest
from light import load_lights, try_lights
from pain import load_all
from trial import images_made, told, try_pain

TEN = 10
ROOT = Path(__file__).resolve().parents[2]


def commit() -> str:
    """The hash of what is tried; "" where there is no repository."""
    given = os.environ.get("GITHUB_SHA", "")
    asked = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True)
    return given or asked.stdout.strip()


def chosen(names: list[str], commit_hash: str, count: int = TEN) -> list[str]:
    """The same for a commit wherever it is tried; every pain's turn comes."""
    by_hash = sorted(names, key=lambda name: hashlib.sha256(f"{commit_hash} {name}".encode()).digest())
    return sorted(by_hash[:count])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" not in metafunc.fixturenames:
        return
    made = images_made()
    pains = {f"{each.area}/{each.name}": each for each in load_all() if not each.image or each.image in made}
    everything = metafunc.config.getoption("--all-pains", False)
    passing = [name for name, pain in pains.items() if not pain.known]
    metafunc.parametrize("name", list(pains) if everything else chosen(passing, commit()))


@pytest.mark.real_kernel
@pytest.mark.timeout(900)
def test_its_cause_is_named_its_fix_is_proposed_and_with_the_fix_it_is_gone(name: str) -> None:
    (pain,) = [each for each in load_all() if f"{each.area}/{each.name}" == name]
    verdict = try_pain(pain)
    if verdict.word == "FAIL":  # requests that a busy machine loses, or does not: once more, and the first time is told
        warnings.warn(f"{name} failed at first: {told(verdict)}: {'; '.join(verdict.why)}", stacklevel=1)
        verdict = try_pain(pain)
    assert verdict.word != "FAIL", "\n".join([told(verdict), *verdict.why])


@pytest.mark.real_kernel
@pytest.mark.timeout(3000)
def test_what_lint_predicts_happens_and_with_the_fix_it_does_not(request: pytest.FixtureRequest) -> None:
    lights = {each.rule: each for each in load_lights() if not each.known}
    everything = request.config.getoption("--all-pains", False)
    names = list(lights) if everything else chosen(list(lights), commit())
    failed = [each for each in try_lights([lights[name] for name in names]) if not each.passed]
    if failed:  # a busy machine may be too slow: once more, and the first time is told
        first = "; ".join(f"{told(each)}: {each.why}" for each in failed)
        warnings.warn(f"failed at first: {first}", stacklevel=1)
        again = [lights[each.pain.partition("/")[2]] for each in failed]
        failed = [each for each in try_lights(again) if not each.passed]
    assert not failed, "\n".join(line for each in failed for line in (told(each), *each.why))


def test_a_commit_chooses_ten_and_another_commit_chooses_others() -> None:
    names = [f"a/{number}" for number in range(60)]
    first, second = chosen(names, "1f3a"), chosen(names, "77aa")
    assert len(first) == len(second) == TEN and first != second and first == chosen(names, "1f3a")
    assert len({each for number in range(60) for each in chosen(names, str(number))}) == 60
