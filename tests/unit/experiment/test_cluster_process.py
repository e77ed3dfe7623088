"""A cluster that is a child of this process."""

from pathlib import Path

import pytest

from lastcall.experiment.child import ClusterProcess
from lastcall.kube.cluster import ClusterStartError


@pytest.mark.loopback
def test_a_user_s_operator_py_does_not_take_the_place_of_python_s_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "operator.py").write_text("raise SystemExit('the file of the user was imported')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ClusterStartError) as caught:
        ClusterProcess("refused", ["--nodes", "0"]).start()
    assert "'--nodes': 0 is too few" in str(caught.value)
