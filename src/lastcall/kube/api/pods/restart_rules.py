"""Whether a container is started again after it has ended: restart policies and rules (KEP-5307, KEP-5532).

Source: pkg/api/v1/pod/util.go (ContainerShouldRestart, IsContainerRestartable, AllContainersCouldRestart).
"""

# check: pure

from lastcall.kube.api.meta import AnyObject, Object

RESTART_ALL = "RestartAllContainers"


def matching_rule(container: AnyObject, exit_code: int) -> Object | None:
    """Return the first of the container's rules that this exit matches; they count only beside a policy of its own."""
    if not container.get("restartPolicy"):
        return None
    for rule in container.get("restartPolicyRules") or []:
        codes = rule.get("exitCodes") or {}
        values, operator = codes.get("values") or [], codes.get("operator")
        if (operator == "In" and exit_code in values) or (operator == "NotIn" and exit_code not in values):
            found: Object = rule
            return found
    return None


def restarts_by_rule(container: AnyObject, exit_code: int) -> bool:
    """Return whether it is one of the container's own rules that starts it again after this exit, or all containers."""
    return (matching_rule(container, exit_code) or {}).get("action") in ("Restart", RESTART_ALL)


def container_should_restart(container: AnyObject, pod: AnyObject, exit_code: int) -> bool:
    """Return whether the restart policies want a new instance after this exit (ContainerShouldRestart)."""
    rule = matching_rule(container, exit_code)
    if rule is not None:
        return rule.get("action") in ("Restart", RESTART_ALL)
    policy = container.get("restartPolicy") or pod["spec"].get("restartPolicy", "Always")
    return bool(policy == "Always" or (policy == "OnFailure" and exit_code != 0))


def is_container_restartable(container: AnyObject, pod: AnyObject) -> bool:
    """Return whether there is an exit after which it is started again (IsContainerRestartable)."""
    policy = container.get("restartPolicy")
    if not policy:
        return bool(pod["spec"].get("restartPolicy", "Always") != "Never")
    rules = container.get("restartPolicyRules") or []
    return policy != "Never" or any(rule.get("action") == "Restart" for rule in rules)


def all_containers_could_restart(pod: AnyObject) -> bool:
    """Return whether an exit of some container may restart all of them (AllContainersCouldRestart)."""
    spec = pod["spec"]
    return any(
        rule.get("action") == RESTART_ALL
        for group in ("initContainers", "containers")
        for container in spec.get(group) or []
        for rule in container.get("restartPolicyRules") or []
    )
