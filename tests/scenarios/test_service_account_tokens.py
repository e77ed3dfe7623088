"""Secrets with the token of a ServiceAccount, as `kubectl apply` asks for one (control-plane-semantics 4.8)."""

import base64

import pytest
from virtual_cluster import VirtualCluster, run_cluster

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, annotations_of, uid_of
from lastcall.kube.api.resources import SECRETS, SERVICEACCOUNTS, TOKENREVIEWS

ACCOUNT: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
SECRET: Object = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "robot-token", "annotations": {"kubernetes.io/service-account.name": "robot"}},
    "type": "kubernetes.io/service-account-token",
}


async def secret(cluster: VirtualCluster) -> Object | None:
    try:
        return await cluster.client.get(SECRETS, "robot-token", "default")
    except StatusError as error:
        if error.code == 404:
            return None
        raise


async def filled(cluster: VirtualCluster) -> bool:
    return "token" in ((await secret(cluster) or {}).get("data") or {})


async def gone(cluster: VirtualCluster) -> bool:
    return await secret(cluster) is None


async def who(cluster: VirtualCluster, token: str) -> Object:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status: Object = (await cluster.client.create(TOKENREVIEWS, review))["status"]
    return status


def test_a_token_secret_is_filled_and_its_token_is_good_until_the_secret_goes():
    async def scenario(cluster):
        await cluster.create(ACCOUNT, SECRET)
        await cluster.wait_until_async(lambda: filled(cluster))
        found = await secret(cluster)
        account = await cluster.client.get(SERVICEACCOUNTS, "robot", "default")
        assert annotations_of(found)["kubernetes.io/service-account.uid"] == uid_of(account)
        data = {key: base64.b64decode(value).decode() for key, value in found["data"].items()}
        assert data.keys() == {"ca.crt", "namespace", "token"}
        assert (data["ca.crt"], data["namespace"]) == ("CA", "default")
        status = await who(cluster, data["token"])
        assert status["user"]["username"] == "system:serviceaccount:default:robot"
        await cluster.sleep(7200)  # an ordinary token is good for an hour
        assert (await who(cluster, data["token"])).get("authenticated")
        await cluster.delete("secret/robot-token")
        assert not (await who(cluster, data["token"])).get("authenticated")

    run_cluster(scenario)


def test_what_is_taken_out_of_a_token_secret_comes_back():
    async def scenario(cluster):
        await cluster.create(ACCOUNT, SECRET)
        await cluster.wait_until_async(lambda: filled(cluster))
        before = (await secret(cluster))["data"]
        await cluster.patch("secret/robot-token", {"data": {"token": None, "ca.crt": "eA=="}})
        await cluster.wait_until_async(lambda: filled(cluster))
        after = (await secret(cluster))["data"]
        assert after["ca.crt"] == before["ca.crt"]
        assert after["token"] != before["token"]

    run_cluster(scenario)


@pytest.mark.parametrize("never", [True, False])
def test_a_token_secret_goes_with_its_service_account(never):
    async def scenario(cluster):
        if not never:
            await cluster.create(ACCOUNT)
        await cluster.create(SECRET)
        if not never:
            await cluster.wait_until_async(lambda: filled(cluster))
            await cluster.delete("serviceaccount/robot")
        await cluster.wait_until_async(lambda: gone(cluster))

    run_cluster(scenario)
