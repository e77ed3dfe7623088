"""What is said of options and bodies of subresources and of DELETE that make no sense."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import DEPLOYMENTS, PODS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.subresources.actions import parse_log_options
from lastcall.kube.apiserver.subresources.eviction import eviction_options
from lastcall.kube.apiserver.wire.bodies import Turns, decode_optional
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.negotiation import JSON
from lastcall.kube.apiserver.wire.options import parse_delete_options
from lastcall.world.clock import RealClock

ADMIN = UserInfo("admin", ("system:masters",))


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        (
            {"limitBytes": "0"},
            422,
            'PodLogOptions "p" is invalid: limitBytes: Invalid value: 0: must be greater than 0',
        ),
        ({"sinceSeconds": "0"}, 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            {"sinceSeconds": "1", "sinceTime": "2030-01-01T00:00:00Z"},
            422,
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        ({"stream": "Stdout"}, 422, "stream: Forbidden: may not be specified"),
        ({"sinceTime": "foo"}, 400, 'parsing time "foo" as "2006-01-02T15:04:05Z07:00": cannot parse "foo" as "2006"'),
    ],
)
def test_log_options_that_make_no_sense(query: dict[str, str], code: int, words: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_log_options("p", query)
    assert refused.value.code == code
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{bad", "couldn't get version/kind; json parse error: invalid character 'b' looking for beginning of object"),
        (
            b"[]",
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct",
        ),
        (b'{"gracePeriodSeconds":"x"}', "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriod"),
        (b'{"kind":"Pod"}', 'no kind "Pod" is registered for version "meta.k8s.io/v1" in scheme "pkg/apis/meta/'),
    ],
)
async def test_a_body_of_a_delete_that_cannot_be_read(body: bytes, words: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_delete_options(await decode_optional(body, JSON, None, Turns(RealClock())), {}, ())
    assert refused.value.code == 400
    assert refused.value.message.startswith(words)


def test_a_binding_says_what_is_wrong_with_it(virtual) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "m", "image": "i"}]}}

    async def refused(api, body) -> str:
        with pytest.raises(StatusError) as error:
            await api.server.operations.create(
                RequestContext(ADMIN), PODS, body, "default", name="p", subresource="binding"
            )
        return error.value.message

    async def scenario(api) -> None:
        await api.admin.create(PODS, pod, "default")
        assert await refused(api, {"metadata": {"name": "p"}, "target": {"kind": "Pod"}}) == (
            '[target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>", target.name: Required value]'
        )
        assert await refused(api, {"metadata": {"name": "q"}, "target": {"name": "n"}}) == (
            "name in URL does not match name in Binding object"
        )

    virtual(scenario)


def test_an_eviction_of_another_namespace_is_refused() -> None:
    with pytest.raises(StatusError, match="the namespace of the provided object does not match") as refused:
        eviction_options(RequestContext(ADMIN), {"metadata": {"name": "p", "namespace": "other"}}, "n", "p")
    assert refused.value.code == 400


def test_a_patch_of_a_scale_with_a_word_for_a_number_is_a_422_and_a_pods_class_stays(virtual) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}

    async def scenario(api) -> None:
        await api.admin.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec}, "default")
        with pytest.raises(StatusError, match="cannot unmarshal string into Go struct field ScaleSpec") as refused:
            await api.admin.patch(DEPLOYMENTS, "d", {"spec": {"replicas": "x"}}, "default", subresource="scale")
        assert refused.value.code == 422
        await api.admin.create(PODS, {"metadata": {"name": "p"}, "spec": template["spec"]}, "default")
        with pytest.raises(StatusError, match="field is immutable"):
            await api.admin.patch(PODS, "p", {"status": {"qosClass": "Guaranteed"}}, "default", subresource="status")

    virtual(scenario)
