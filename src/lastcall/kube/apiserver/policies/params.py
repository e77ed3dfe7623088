"""The parameter objects of a policy with one of its bindings.

Source: apiserver pkg/admission/plugin/policy/generic/policy_dispatcher.go:CollectParams, policy_source.go.
"""

from collections.abc import Callable

from lastcall.kube.api.meta import Object, labels_of
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.selectors import selector_of_expressions
from lastcall.kube.apiserver.admission.reader import Reader
from lastcall.kube.apiserver.conversions.table import conversion_of

KindFor = Callable[[str, str, str], Resource | None]
"""(group, version, kind) → the kind of that name, if there is one."""


class NotConfigured(Exception):
    """The policy or the binding cannot be used as it is."""


def param_resource(spec: Object, kind_for: KindFor) -> Resource | None:
    """Return the kind of the parameters; None for a policy without any. Raises NotConfigured."""
    kind = spec.get("paramKind")
    if kind is None:
        return None
    group, _, version = kind["apiVersion"].rpartition("/")
    found = kind_for(group, version, kind["kind"])
    if found is None:
        named = f"{group}/{version}, Kind={kind['kind']}"
        raise NotConfigured(f"failed to find resource referenced by paramKind: '{named}'")
    return found


async def collect(reader: Reader, resource: Resource | None, ref: Object | None, namespace: str) -> list[Object | None]:
    """Collect the parameters, each of which is to be evaluated by itself. Raises NotConfigured."""
    if resource is None or ref is None:
        return [None]
    if resource.namespaced:
        within = ref.get("namespace") or namespace
        if not within:
            why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            raise NotConfigured(why)
    elif ref.get("namespace"):
        raise NotConfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    else:
        within = ""
    conversion = conversion_of(resource)
    stored = resource if conversion is None else conversion.stored
    if ref.get("name"):
        one = await reader.get(stored, within, ref["name"])
        found = [] if one is None else [one]
    else:
        selector = selector_of_expressions(ref.get("selector") or {})
        found = [each for each in await reader.list(stored, within) if selector.matches(labels_of(each))]
    if not found and ref.get("parameterNotFoundAction") == "Deny":
        raise NotConfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
    shown = found if conversion is None else [conversion.show(each) for each in found]
    return [{**each, "apiVersion": resource.api_version, "kind": resource.kind} for each in shown]
