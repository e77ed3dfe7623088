"""Cluster IPs of a Service that is changed."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import CONFIGMAPS, SERVICES
from lastcall.kube.apiserver.answers.representation import table
from lastcall.kube.apiserver.wire.negotiation import MediaType


def test_who_changes_the_cluster_ip_alone_is_told_that_it_may_not_change(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, "default")
        for address in ("10.96.9.9", "None"):
            with pytest.raises(StatusError) as refused:
                await api.admin.patch(SERVICES, "s", {"spec": {"clusterIP": address}}, "default")
            assert refused.value.message == (
                f'Service "s" is invalid: spec.clusterIPs[0]: Invalid value: ["{address}"]: may not change once set'
            )
        with pytest.raises(StatusError, match=r"expected an IPv6 value as indicated by `ipFamilies\[0\]`"):
            await api.admin.patch(SERVICES, "s", {"spec": {"ipFamilies": ["IPv6"]}}, "default")

    virtual(scenario)


def test_a_table_includes_what_there_is_to_include() -> None:
    from datetime import UTC, datetime

    with pytest.raises(StatusError) as refused:
        table(CONFIGMAPS, [], MediaType(as_="Table"), {"includeObject": "Foo"}, {}, datetime.now(UTC), 36)
    assert refused.value.code == 400
    assert refused.value.message == (
        "Unable to convert to Table as requested: includeObject: Invalid value: \"Foo\": must be 'Metadata', "
        "'Object', 'None', or empty"
    )
