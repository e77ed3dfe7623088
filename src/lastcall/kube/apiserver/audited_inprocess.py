"""The client of this process, with every request audited as if it had come over HTTP."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any
from urllib.parse import quote

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import AnyObject, Object, name_of
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.audit.auditor import Auditor
from lastcall.kube.apiserver.audit.request import DELETE_OPTIONS_TYPE, AuditedRequest, answering
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.inprocess import InProcessClient
from lastcall.kube.apiserver.operations import Operations
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.kube.client.api import MERGE_PATCH, ListResult, WatchEvent


class AuditedClient(InProcessClient):
    """As InProcessClient. Requests name what HTTP would have: verb, path, user, objects."""

    def __init__(self, operations: Operations, user: UserInfo, user_agent: str, auditor: Auditor) -> None:
        super().__init__(operations, user, user_agent)
        self._auditor = auditor

    @contextmanager
    def _request(
        self, verb: str, resource: Resource, namespace: str, name: str = "", subresource: str = "", query: str = ""
    ) -> Iterator[AuditedRequest | None]:
        path = resource.path(namespace, name, subresource)
        info = RequestInfo(
            True, path, verb, resource.group, resource.version, namespace, resource.plural, name, subresource
        )
        uri = f"{path}?{query}" if query else path
        audited = self._auditor.begin_in_process(self._user, self._user_agent, uri, info)
        if audited is None:
            yield None
            return
        code: int | None = 201 if verb == "create" else 200
        audited.authorized(True, "")
        try:
            with nullcontext() if verb == "watch" else answering(audited):  # of a watch the block is its caller's
                yield audited
        except StatusError as error:
            code = error.code
            audited.response_object(dict(error.status))
            if code == 403:
                audited.authorized(False, "")
            raise
        except BaseException:
            code = 200 if verb == "watch" else None
            raise
        finally:
            audited.completed(code)

    async def get(self, resource: Resource, name: str, namespace: str = "", *, subresource: str = "") -> Object:
        with self._request("get", resource, namespace, name, subresource) as audited:
            return _answered(audited, await super().get(resource, name, namespace, subresource=subresource))

    async def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ListResult:
        query = _query(labelSelector=label_selector, fieldSelector=field_selector)
        with self._request("list", resource, namespace, query=query) as audited:
            found = await super().list(
                resource, namespace, label_selector=label_selector, field_selector=field_selector
            )
            if audited is not None and audited.wants_response:
                audited.response_object(
                    {
                        "kind": f"{resource.kind}List",
                        "apiVersion": resource.api_version,
                        "metadata": {"resourceVersion": found.resource_version},
                        "items": found.items,
                    }
                )
            return found

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        bookmarks: bool = False,
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        query = _query(
            labelSelector=label_selector, fieldSelector=field_selector, resourceVersion=resource_version, watch="true"
        )
        with self._request("watch", resource, namespace, query=query) as audited:
            async with super().watch(
                resource,
                namespace,
                resource_version=resource_version,
                label_selector=label_selector,
                field_selector=field_selector,
                bookmarks=bookmarks,
            ) as events:
                if audited is not None:
                    audited.started(200)
                yield events

    async def create(
        self, resource: Resource, obj: AnyObject, namespace: str = "", *, name: str = "", subresource: str = ""
    ) -> Object:
        with self._request("create", resource, namespace, name, subresource) as audited:
            if audited is not None:
                audited.request_object(obj)
            return _answered(
                audited, await super().create(resource, obj, namespace, name=name, subresource=subresource)
            )

    async def update(self, resource: Resource, obj: AnyObject, namespace: str = "", *, subresource: str = "") -> Object:
        with self._request("update", resource, namespace, name_of(obj), subresource) as audited:
            if audited is not None:
                audited.request_object(obj)
            return _answered(audited, await super().update(resource, obj, namespace, subresource=subresource))

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        content_type: str = MERGE_PATCH,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Object:
        query = _query(dryRun="All" if dry_run else "", fieldManager=field_manager)
        with self._request("patch", resource, namespace, name, subresource, query) as audited:
            if audited is not None:
                audited.request_patch(patch)
            answer = await super().patch(
                resource,
                name,
                patch,
                namespace,
                content_type=content_type,
                subresource=subresource,
                dry_run=dry_run,
                field_manager=field_manager,
            )
            return _answered(audited, answer)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        grace_period_seconds: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation_policy: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        with self._request("delete", resource, namespace, name) as audited:
            if audited is not None:
                audited.request_object(
                    _delete_options(grace_period_seconds, uid, resource_version, propagation_policy, dry_run)
                )
            answer = await super().delete(
                resource,
                name,
                namespace,
                grace_period_seconds=grace_period_seconds,
                uid=uid,
                resource_version=resource_version,
                propagation_policy=propagation_policy,
                dry_run=dry_run,
            )
            return _answered(audited, answer)


def _answered(audited: AuditedRequest | None, answer: Object) -> Object:
    if audited is not None:
        audited.response_object(answer)
    return answer


def _query(**fields: str) -> str:
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items() if value)


def _delete_options(
    grace: int | None, uid: str | None, version: str | None, propagation: str | None, dry_run: bool
) -> Object:
    preconditions = {key: value for key, value in (("uid", uid), ("resourceVersion", version)) if value is not None}
    options: Object = {"gracePeriodSeconds": grace, "preconditions": preconditions or None}
    options |= {"propagationPolicy": propagation, "dryRun": ["All"] if dry_run else None}
    given = {key: value for key, value in options.items() if value is not None}
    return {**DELETE_OPTIONS_TYPE, **given}
