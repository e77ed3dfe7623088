"""An update of the application, with requests all the while."""

import lastcall
from conftest import MANIFESTS, code


def test_an_update_loses_no_request():
    files = [MANIFESTS / name for name in ("store.yaml", "migration.yaml", "server.yaml")]
    rollout = lastcall.rollout(code(), *files, workload="deployment/server", load=50, control="1s", settle="1s")
    rollout.assert_nothing_lost()
    assert rollout.total_requests > 100
