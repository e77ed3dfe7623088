"""The `matchConditions` of a webhook.

Source: apiserver pkg/admission/plugin/webhook/generic/webhook.go:ShouldCallHook.
"""

from lastcall.kube.api.errors import forbidden
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.policies.deciding import Decider
from lastcall.kube.apiserver.policies.evaluation import (
    CONDITIONS_BUDGET,
    Allowance,
    Evaluation,
    Matched,
    conditions_met,
)
from lastcall.kube.apiserver.policies.inputs import Inputs
from lastcall.kube.apiserver.policies.language import Compiled, condition_programs
from lastcall.kube.apiserver.proxying.webhooks.dispatch import Convert
from lastcall.kube.apiserver.proxying.webhooks.matching import Webhook, Write
from lastcall.kube.apiserver.wire.context import RequestContext

REMEMBERED = 256
"""Of how many lists of conditions the programs are kept."""


class Conditions:
    def __init__(self, decider: Decider, convert: Convert) -> None:
        self._decider, self._convert = decider, convert
        self._programs: dict[tuple[str, ...], list[Compiled]] = {}

    async def met(self, context: RequestContext, webhook: Webhook, write: Write, resource: Resource) -> bool:
        """Return whether the webhook, which sees the write as one of `resource`, is to be asked.

        Raises the 403 StatusError when that is unknown and its failurePolicy is Fail.
        """
        conditions = webhook.spec.get("matchConditions") or ()
        programs = self._compiled(tuple(each.get("expression") or "" for each in conditions))

        decisions = self._decider.begin()
        inputs = Inputs(self._convert, context, write, decisions.asked).of(resource)

        def decide(allowance: Allowance | None) -> Matched:
            evaluation = Evaluation(inputs, {}, CONDITIONS_BUDGET, allowance)
            return conditions_met(evaluation, programs, webhook.spec.get("failurePolicy"))

        matched = await decisions.one(decide)
        if matched.error:
            raise forbidden(write.resource, write.name, matched.error)
        return matched.yes

    def _compiled(self, texts: tuple[str, ...]) -> list[Compiled]:
        found = self._programs.get(texts)
        if found is None:
            if len(self._programs) >= REMEMBERED:
                self._programs.clear()
            found = self._programs[texts] = condition_programs(texts)
        return found
