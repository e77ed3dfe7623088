"""A bootstrap token's day, in virtual time: it is shown, it signs cluster-info, and it is deleted when it is over."""

import base64

from virtual_cluster import VirtualCluster, run_cluster

from lastcall.api.errors import StatusError
from lastcall.api.meta import Object
from lastcall.api.resources import CLUSTERROLEBINDINGS, CONFIGMAPS, SECRETS, TOKENREVIEWS
from lastcall.api.text.bootstrap_tokens import Token, detached_signature, parse
from lastcall.apiserver.auth.pki import ClusterCA
from lastcall.cluster.staying.joining import GOOD_FOR, Invitation, invite

CA = ClusterCA.create().certificate_pem


async def invited(cluster: VirtualCluster) -> Invitation:
    return await invite(cluster.client, cluster.world.clock, "c", "https://10.0.0.1:6443", CA)


async def who(cluster: VirtualCluster, token: str) -> Object:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status: Object = (await cluster.client.create(TOKENREVIEWS, review))["status"]
    return status


async def cluster_info(cluster: VirtualCluster) -> dict[str, str]:
    found: dict[str, str] = (await cluster.client.get(CONFIGMAPS, "cluster-info", "kube-public"))["data"]
    return found


def token_of(made: Invitation) -> Token:
    found = parse(made.token)
    assert found is not None
    return found


def test_a_token_makes_its_bearer_one_who_joins_until_its_day_is_over() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        made = await invited(cluster)
        token = token_of(made)
        user = (await who(cluster, made.token))["user"]
        assert user["username"] == f"system:bootstrap:{token.id}"
        assert user["groups"] == [
            "system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:authenticated",
        ]  # fmt: skip
        await cluster.sleep(GOOD_FOR.total_seconds() - 60)
        assert (await who(cluster, made.token)).get("authenticated")

        async def is_gone() -> bool:
            try:
                await cluster.client.get(SECRETS, f"bootstrap-token-{token.id}", "kube-system")
            except StatusError as error:
                return error.code == 404
            return False

        assert not await is_gone()
        await cluster.sleep(61)
        assert not (await who(cluster, made.token)).get("authenticated")
        await cluster.wait_until_async(is_gone)

    run_cluster(scenario)


def test_cluster_info_has_a_signature_of_each_token_that_is_good() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        first, second = token_of(await invited(cluster)), token_of(await invited(cluster))

        async def signed(*tokens: Token) -> bool:
            data = await cluster_info(cluster)
            wanted = {f"jws-kubeconfig-{each.id}": detached_signature(data["kubeconfig"], each) for each in tokens}
            return {key: value for key, value in data.items() if key != "kubeconfig"} == wanted

        await cluster.wait_until_async(lambda: signed(first, second))
        assert base64.b64encode(CA).decode() in (await cluster_info(cluster))["kubeconfig"]
        await cluster.client.delete(SECRETS, f"bootstrap-token-{first.id}", "kube-system")
        await cluster.wait_until_async(lambda: signed(second))

    run_cluster(scenario)


def test_what_is_there_already_stays_with_the_next_token() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await invited(cluster)
        names = {"kubeadm:kubelet-bootstrap", "kubeadm:node-autoapprove-bootstrap"}
        before = {each["metadata"]["name"]: each for each in (await cluster.client.list(CLUSTERROLEBINDINGS)).items}
        assert names <= set(before)
        await invited(cluster)
        after = {each["metadata"]["name"]: each for each in (await cluster.client.list(CLUSTERROLEBINDINGS)).items}
        assert after == before

    run_cluster(scenario)
