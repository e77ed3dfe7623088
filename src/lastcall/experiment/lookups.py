"""Ask for objects that others may have deleted meanwhile."""

from lastcall.kube.api import Object, Resource, StatusError, is_not_found, name_of, namespace_of, uid_of
from lastcall.kube.client import Client


async def get_or_none(client: Client, resource: Resource, name: str, namespace: str) -> Object | None:
    """Return the object, None when it does not exist. Raises StatusError, ConnectionLost."""
    try:
        return await client.get(resource, name, namespace)
    except StatusError as error:
        if is_not_found(error):
            return None
        raise


async def delete_if_exists(
    client: Client, resource: Resource, obj: Object, *, grace: int | None = None, policy: str | None = None
) -> bool:
    """Return whether the object existed; another one of its name stays. Raises StatusError, ConnectionLost."""
    try:
        await client.delete(
            resource,
            name_of(obj),
            namespace_of(obj),
            grace_period_seconds=grace,
            uid=uid_of(obj),
            propagation_policy=policy,
        )
    except StatusError as error:
        if is_not_found(error) or error.code == 409:
            return False
        raise
    return True
