"""Each controller has a ServiceAccount, and each ServiceAccount a role of Kubernetes's."""

import json
from pathlib import Path

import lastcall.kube.apiserver.auth
from lastcall.kube.controllers.access.identities import ACCOUNTS, ROOT_CA_PUBLISHER
from lastcall.kube.controllers.manager import NAMES
from lastcall.kube.controllers.serviceaccount.tokens import COMPONENT as TOKENS


def test_every_controller_has_an_account_but_the_one_of_tokens_which_kubernetes_runs_as_the_manager() -> None:
    assert set(ACCOUNTS) - {ROOT_CA_PUBLISHER} == set(NAMES) - {TOKENS}


def test_every_account_has_a_role_in_kubernetess_policy() -> None:
    policy = Path(lastcall.kube.apiserver.auth.__file__).parent / "bootstrap_policy.json"
    roles = {each["name"] for each in json.loads(policy.read_text()) if each["kind"] == "ClusterRole"}
    missing = {name for name in ACCOUNTS.values() if f"system:controller:{name}" not in roles}
    assert not missing
