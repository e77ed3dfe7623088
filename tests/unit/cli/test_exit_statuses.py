"""Each error has its exit status, and the errors are one family."""

import signal

import pytest

import lastcall
from lastcall import errors
from lastcall.cli.errors import guarded
from lastcall.cli.exit_status import of_error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.LastcallError("x"), 1),
        (errors.UserError("x"), 2),
        (errors.InvalidManifest("x"), 2),
        (errors.NoRequests("x"), 2),
        (errors.WorldError("x"), 1),
        (errors.ClusterError("x"), 1),
        (errors.NotReady("x"), 1),
        (errors.StillThere("x"), 1),
        (errors.Crashed("x"), 3),
        (errors.Interrupted("x"), 130),
        (errors.Interrupted("x", signal.SIGTERM), 143),
        (errors.ReaderGone("x"), 141),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_an_error_ends_a_command_with_its_status(
    error: errors.LastcallError, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lastcall.cli.errors._silence", lambda number: None)
    said: list[str] = []

    def fails() -> int:
        raise error

    assert of_error(error) == guarded(fails, said.append) == status
    assert said == ([] if isinstance(error, errors.ReaderGone) else ["x"])


def test_every_error_of_the_python_api_is_of_one_family() -> None:
    named = [getattr(lastcall, name) for name in lastcall.__all__ if name.endswith(("Error", "Manifest", "Ready"))]
    assert named and all(issubclass(each, errors.LastcallError) for each in named)
