"""`/metrics` and `/statusz` of the API server, over HTTPS."""

import asyncio
from contextlib import suppress

import pytest
from api_server import running_server
from scenario.metrics import unlike_kubernetes, value
from waiting import until

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import CONFIGMAPS, LEASES, NODES
from lastcall.kube.client.api import APPLY_PATCH

pytestmark = pytest.mark.loopback


async def told(client) -> str:
    return (await client.request("GET", "/metrics", accept="*/*")).decode()


async def test_requests_are_counted_by_what_they_are_and_how_they_end() -> None:
    async with running_server() as api:
        client = api.http()
        try:
            await client.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
            for _ in range(3):
                await client.get(CONFIGMAPS, "a", "default")
            await client.list(CONFIGMAPS, "default")
            await client.list(NODES)
            with suppress(StatusError):
                await client.get(LEASES, "none", "kube-node-lease")
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
            await client.request(
                "PATCH",
                "/api/v1/namespaces/default/configmaps/a",
                query=(("fieldManager", "m"), ("dryRun", "All")),
                body=body,
                content_type=APPLY_PATCH,
            )
            for number in range(3):
                with suppress(StatusError):
                    await client.request(
                        "POST", "/api/v1/namespaces/default/configmaps", query=[("dryRun", f"n{number}")], body=body
                    )
            await client.request("GET", "/readyz", accept="*/*")
            with suppress(StatusError):
                await client.request("GET", "/readyz/whatever", accept="*/*")
            await client.delete(CONFIGMAPS, "a", "default")
            text = await told(client)
            assert unlike_kubernetes(text) == []
            about = {"resource": "configmaps", "group": "", "version": "v1", "subresource": ""}
            total = "apiserver_request_total"
            assert value(text, total, **about, verb="POST", code="201", scope="resource") == 1
            assert value(text, total, **about, verb="GET", code="200", scope="resource") == 3
            assert value(text, total, **about, verb="LIST", code="200", scope="namespace") == 1
            assert value(text, total, **about, verb="APPLY", dry_run="All", code="200") == 1
            assert value(text, total, **about, verb="POST", dry_run="invalid", code="422") == 3
            assert value(text, total, **about, verb="DELETE", code="200") == 1
            assert value(text, total, resource="nodes", verb="LIST", scope="cluster") == 1
            assert value(text, total, resource="leases", verb="GET", code="404") == 1
            assert value(text, total, subresource="/readyz", component="", verb="GET") == 1
            assert value(text, total, subresource="/readyz/whatever") == 0
            assert value(text, "apiserver_request_duration_seconds_count", **about, verb="GET") == 3
            assert value(text, "apiserver_request_sli_duration_seconds_count", **about, verb="GET") == 3
            assert value(text, "apiserver_response_sizes_sum", **about, verb="GET") > 3 * 100
            assert value(text, "apiserver_response_sizes_count", verb="POST") == 0
            assert value(text, "apiserver_current_inflight_requests") == 0
            assert value(text, "apiserver_storage_objects", resource="namespaces") == 4
            assert value(text, "apiserver_resource_objects", resource="configmaps", group="") >= 0
            assert value(text, "kubernetes_build_info", git_version="v1.36.2") == 1
            assert value(text, "process_resident_memory_bytes") > 1e6
        finally:
            await client.close()


async def test_watches_are_counted_while_they_are_open_and_what_they_tell() -> None:
    async with running_server() as api:
        client = api.http()
        about = {"resource": "configmaps", "version": "v1"}
        try:
            async with client.watch(CONFIGMAPS, "default") as events:
                await client.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
                await anext(events)
                text = await told(client)
                assert value(text, "apiserver_longrunning_requests", **about, verb="WATCH") == 1
                assert value(text, "apiserver_watch_events_total", **about) == 1
                assert value(text, "apiserver_watch_events_sizes_sum", **about) > 100
                assert value(text, "apiserver_request_total", **about, verb="WATCH") == 0

            async def ended() -> bool:
                return value(await told(client), "apiserver_longrunning_requests", **about) == 0

            await until(ended)
        finally:
            await client.close()


async def test_only_those_who_may_are_told_and_refusals_are_counted_apart() -> None:
    async with running_server() as api:
        anonymous, stranger, admin = api.http(token=""), api.http(token="nobody's"), api.http()
        try:
            for path in ("/metrics", "/statusz"):
                with pytest.raises(StatusError) as refused:
                    await anonymous.request("GET", path, accept="*/*")
                assert refused.value.code == 403
            with pytest.raises(StatusError) as unknown:
                await stranger.request("GET", "/metrics")
            assert unknown.value.code == 401
            text = await told(admin)
            assert value(text, "authorization_attempts_total", result="denied") == 2
            assert value(text, "authentication_attempts", result="failure") == 1
            assert value(text, "authentication_attempts", result="success") == 3
            assert value(text, "apiserver_request_total") == 0
        finally:
            await asyncio.gather(anonymous.close(), stranger.close(), admin.close())


async def test_statusz_is_for_people_unless_its_form_is_asked_for() -> None:
    async with running_server() as api:
        client = api.http()
        try:
            assert b"apiserver statusz" in await client.request("GET", "/statusz", accept="*/*")
            form = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz"
            assert b'"binaryVersion": "1.36.2"' in await client.request("GET", "/statusz", accept=form)
            with pytest.raises(StatusError, match="only the following media types are accepted: application/json, app"):
                await client.request("GET", "/statusz", accept="application/json")
        finally:
            await client.close()
