"""What admission policies and webhooks need, made with the first of each: a cluster without any imports nothing."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.validators.expressions import Scope
from lastcall.kube.apiserver.admission.reader import Reader
from lastcall.kube.apiserver.auth.authorizer import Authorizer
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.apiserver.policies.conditions import Conditions
    from lastcall.kube.apiserver.policies.dispatch import Policies
    from lastcall.kube.apiserver.proxying.webhooks.caller import Caller
    from lastcall.kube.apiserver.proxying.webhooks.conversion import ConversionWebhook
    from lastcall.kube.apiserver.proxying.webhooks.dispatch import Webhooks
    from lastcall.kube.apiserver.proxying.webhooks.matching import Webhook, Write
    from lastcall.kube.streaming.dialing import Dial


class LateExpressions:
    """Says what is wrong with expressions of admission and selectors of devices. (`Expressions`)"""

    def selector(self, text: str) -> str:
        # late: with the first selector
        from lastcall.kube.cel.devices import selector_problem

        return selector_problem(text)

    def scope(self, *, params: bool) -> Scope:
        # late: with the first policy, or the first condition of a webhook
        from lastcall.kube.apiserver.policies.language import PolicyScope

        return PolicyScope(params=params)


class Machinery:
    """`kind_for` finds a kind by group, version and name; `equivalents` gives other kinds by which the same objects may
    be named; `dial` connects to webhooks, where that is not done in the ordinary way."""

    def __init__(
        self,
        world: World,
        reader: Reader,
        authorizer: Authorizer,
        kind_for: Callable[[str, str, str], Resource | None],
        equivalents: Callable[[Resource], Sequence[Resource]],
        dial: "Dial | None",
    ) -> None:
        self._world, self._reader, self._authorizer, self._dial = world, reader, authorizer, dial
        self._kind_for, self.equivalents = kind_for, equivalents
        self._caller: Caller | None = None
        self._webhooks: Webhooks | None = None
        self._policies: Policies | None = None
        self._conditions: Conditions | None = None

    def webhooks(self) -> "Webhooks":
        if self._webhooks is None:
            # late: with the first configuration of a webhook
            from lastcall.kube.apiserver.proxying.webhooks.dispatch import Webhooks
            from lastcall.kube.apiserver.proxying.webhooks.objects import convert, prepared

            self._webhooks = Webhooks(self._world, self._called, convert, prepared, self._met)
        return self._webhooks

    def conversion(self, conversion: Object) -> "ConversionWebhook":
        """Return the webhook of a definition whose `spec.conversion` this is."""
        # late: with the first definition that has one
        from lastcall.kube.apiserver.proxying.webhooks.conversion import ConversionWebhook

        return ConversionWebhook(self._world, self._called, conversion)

    @property
    def _called(self) -> "Caller":
        if self._caller is None:
            # late: with the first webhook
            from lastcall.kube.apiserver.proxying.upstream import dial
            from lastcall.kube.apiserver.proxying.webhooks.caller import Caller

            self._caller = Caller(self._world, self._reader, self._dial or dial)
        return self._caller

    async def close(self) -> None:
        """End the connections to webhooks."""
        if self._caller is not None:
            await self._caller.close()

    def policies(self) -> "Policies":
        if self._policies is None:
            # late: with the first binding of a policy
            from lastcall.kube.apiserver.policies.deciding import Decider
            from lastcall.kube.apiserver.policies.dispatch import Policies
            from lastcall.kube.apiserver.proxying.webhooks.objects import convert, prepared

            self._policies = Policies(Decider(self._authorizer), self._kind_for, convert, prepared)
        return self._policies

    async def _met(self, context: RequestContext, webhook: "Webhook", write: "Write", resource: Resource) -> bool:
        if self._conditions is None:
            # late: with the first condition of a webhook
            from lastcall.kube.apiserver.policies.conditions import Conditions
            from lastcall.kube.apiserver.policies.deciding import Decider
            from lastcall.kube.apiserver.proxying.webhooks.objects import convert

            self._conditions = Conditions(Decider(self._authorizer), convert)
        return await self._conditions.met(context, webhook, write, resource)
