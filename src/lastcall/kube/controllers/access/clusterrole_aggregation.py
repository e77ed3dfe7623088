"""The clusterrole-aggregation-controller: a ClusterRole with an aggregationRule has the rules of those it selects.

The API server makes the default roles with their rules (`admin`, `edit`, `view`), so that there is work only when
a user adds a role for one of them.

Source: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go.
"""

from collections.abc import Iterable

from lastcall.kube.api.meta import Object, labels_of, name_of
from lastcall.kube.api.resources import CLUSTERROLES
from lastcall.kube.api.selectors import selector_of_expressions
from lastcall.kube.client.api import Client
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.worker import Worker
from lastcall.records.record import Recorder
from lastcall.world.world import World

COMPONENT = "clusterrole-aggregation-controller"


def aggregated_rules(role: Object, roles: Iterable[Object]) -> list[Object]:
    """Return the rules of all `roles` that `role` selects, except its own: by selector, then by name, each rule once.

    Raises ValueError for a selector with an unknown operator.
    """
    by_name = sorted(roles, key=name_of)
    rules: list[Object] = []
    for selector in _selectors(role):
        selects = selector_of_expressions(selector)
        for other in by_name:
            if name_of(other) != name_of(role) and selects.matches(labels_of(other)):
                rules += [rule for rule in other.get("rules") or () if rule not in rules]
    return rules


def _selectors(role: Object) -> list[Object]:
    return list((role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ())


class ClusterRoleAggregationController:
    """With each change of a ClusterRole all that aggregate are looked at again."""

    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._client = client
        self._roles: Informer = informers.get(CLUSTERROLES)
        self._worker = Worker(world, COMPONENT, self._sync, client=client)
        self._aggregating: dict[str, None] = {}
        self._roles.add_handler(self._changed, lambda _, role: self._changed(role), self._deleted)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._worker.run([self._roles])

    def _changed(self, role: Object) -> None:
        if _selectors(role):
            self._aggregating[name_of(role)] = None
        else:
            self._aggregating.pop(name_of(role), None)
        self._look_at_all()

    def _deleted(self, role: Object) -> None:
        self._aggregating.pop(name_of(role), None)
        self._look_at_all()

    def _look_at_all(self) -> None:
        for name in self._aggregating:
            self._worker.queue.add(name)

    async def _sync(self, name: str) -> None:
        role = self._roles.get("", name)
        if role is None or not _selectors(role):
            return
        rules = aggregated_rules(role, self._roles.items())
        if rules != (role.get("rules") or []):
            version = role["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "rules": rules}
            await self._client.patch(CLUSTERROLES, name, patch)
