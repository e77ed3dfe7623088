"""Describe the permissions that a command lacks on an existing cluster, with the commands that grant them. Pure."""

# check: pure

from collections.abc import Sequence

from lastcall.kube.api import Resource
from lastcall.world.dataclass import dataclass

ROLE = "lastcall"
"""What the role is called in the commands that are proposed."""


@dataclass(frozen=True, slots=True)
class Missing:
    """`why` is what it was asked for; `names` are the objects, none for all of the kind. With a `subresource` the right
    is one on that (`pods/eviction`)."""

    verbs: tuple[str, ...]
    resource: Resource
    why: str
    names: tuple[str, ...] = ()
    subresource: str = ""

    @property
    def rbac_name(self) -> str:
        """Return its name as RBAC and kubectl write it: `deployments.apps`, `pods/eviction`."""
        of = self.resource.plural + (f".{self.resource.group}" if self.resource.group else "")
        return f"{of}/{self.subresource}" if self.subresource else of


def describe_missing(where: str, namespace: str, missing: Sequence[Missing]) -> str:
    """Return one line for each missing permission, and the commands that grant them.

    A role of kubectl has the same verbs for all of its kinds, so each set of verbs is a role of its own.
    """
    lines = [
        f"{where}: the user may not {' or '.join(each.verbs)} {each.rbac_name} in namespace {namespace}: {each.why}"
        for each in missing
    ]
    roles: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for each in missing:
        if each.names:
            key = (each.verbs, (each.rbac_name,))
            roles.setdefault(key, []).extend(name for name in each.names if name not in roles[key])
    whole: dict[tuple[str, ...], list[str]] = {}
    for each in missing:
        if not each.names and each.rbac_name not in whole.setdefault(each.verbs, []):
            whole[each.verbs].append(each.rbac_name)
    commands = [
        f"--verb={','.join(verbs)} --resource={','.join(kinds)}{''.join(f' --resource-name={name}' for name in names)}"
        for (verbs, kinds), names in roles.items()
    ]
    commands += [f"--verb={','.join(verbs)} --resource={','.join(kinds)}" for verbs, kinds in whole.items()]
    lines.append("fix: ask an administrator to grant these permissions:")
    for number, command in enumerate(commands, 1):
        name = ROLE if len(commands) == 1 else f"{ROLE}-{number}"
        lines.append(f"  kubectl -n {namespace} create role {name} {command}")
        lines.append(f"  kubectl -n {namespace} create rolebinding {name} --role={name} --user=USER")
    return "\n".join(lines)
