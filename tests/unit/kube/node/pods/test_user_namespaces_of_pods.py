import pytest

from lastcall.kube.cri.api import (
    IDMapping,
    NamespaceOption,
    PodSandboxMetadata,
    PodSandboxState,
    PodSandboxStatus,
    RuntimeServiceError,
    UserNamespace,
)
from lastcall.kube.node.pods.user_ids import IDS_PER_POD, UserIDs
from lastcall.kube.node.pods.user_namespaces import UserNamespaces, why_not_by_default
from lastcall.kube.node.runtime.container_config import namespace_options


class Events:
    def __init__(self):
        self.told = []

    def event(self, obj, event_type, reason, message, *, field_path=""):
        self.told.append((event_type, reason, message))


def pod(uid="u", container=None, **spec):
    return {"metadata": {"uid": uid}, "spec": {"containers": [{"name": "c", **(container or {})}], **spec}}


def manager(ids=None, *, why_not="", mappable=True):
    ids = ids or UserIDs(0x7000_0000, 3, by_default=True)
    return UserNamespaces(ids, Events(), lambda: why_not, lambda pod: mappable)


def first_of(users):
    assert users.uids == users.gids
    return users.uids[0].host_id


@pytest.mark.parametrize(
    ("why", "asked"),
    [
        ("", pod()),
        ("", pod(shareProcessNamespace=True)),
        ("", pod(volumes=[{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "p"}}])),
        ("", pod(container={"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}, "runAsUser": 65_535}})),
        ("hostUsers", pod(hostUsers=True)),
        ("hostNetwork", pod(hostNetwork=True)),
        ("hostPID", pod(hostPID=True)),
        ("hostIPC", pod(hostIPC=True)),
        ("hostPath", pod(volumes=[{"name": "v", "hostPath": {"path": "/tmp"}}])),
        ("privileged", pod(container={"securityContext": {"privileged": True}})),
        ("privileged", pod(initContainers=[{"name": "i", "securityContext": {"privileged": True}}])),
        ("id 65536", pod(container={"securityContext": {"runAsUser": 65_536}})),
        ("id 70000", pod(securityContext={"fsGroup": 70_000})),
        ("id 80000", pod(securityContext={"supplementalGroups": [1, 80_000]})),
    ],
)
def test_what_keeps_a_pod_from_having_its_own_ids_by_default(why, asked):
    assert why_not_by_default(asked) == why
    assert manager().options(asked).mode == ("NODE" if why else "POD")


def test_live_pods_have_different_ranges_and_a_free_one_is_used_last():
    users = manager()
    ranges = [first_of(users.options(pod(uid))) for uid in ("a", "b", "a")]
    assert ranges == [0x7000_0000, 0x7000_0000 + IDS_PER_POD, 0x7000_0000]
    users.release("a")
    assert first_of(users.options(pod("c"))) == 0x7000_0000 + 2 * IDS_PER_POD
    assert first_of(users.options(pod("d"))) == 0x7000_0000


def test_a_pod_beyond_the_last_range_shares_the_clusters_ids_and_is_told_unless_it_asked():
    users = manager(UserIDs(0x7000_0000, 1, by_default=True))
    users.options(pod("a"))
    assert users.options(pod("b")).mode == "NODE"
    assert [reason for _, reason, _ in users._events.told] == ["UserNamespaceNotAvailable"]
    with pytest.raises(RuntimeServiceError, match="could not find an empty slot to allocate a user namespace"):
        users.options(pod("c", hostUsers=False))
    users.keep({"c"})
    assert users.options(pod("c", hostUsers=False)).mode == "POD"


def test_what_cannot_be_is_refused_to_who_asked_and_not_done_for_others():
    for users, why in (
        (manager(why_not="tmpfs cannot"), "tmpfs cannot"),
        (manager(UserIDs(0, 0, why="no range of user ids")), "no range of user ids"),
    ):
        with pytest.raises(RuntimeServiceError, match=why):
            users.options(pod("a", hostUsers=False))
        assert users.options(pod("b")).mode == "NODE"


def test_without_by_default_only_who_asks_has_a_range():
    users = manager(UserIDs(65_536, 3))
    assert users.options(pod("a")).mode == "NODE"
    assert first_of(users.options(pod("b", hostUsers=False))) == 65_536


def test_a_claim_on_the_machines_own_file_system_keeps_the_clusters_ids():
    users = manager(mappable=False)
    assert users.options(pod("a")).mode == "NODE"
    assert users.options(pod("b", hostUsers=False)).mode == "POD"


def sandbox(uid, first, state=PodSandboxState.SANDBOX_READY):
    mapping = (IDMapping(first, 0, IDS_PER_POD),)
    options = UserNamespace("POD", mapping, mapping) if first else UserNamespace()
    metadata = PodSandboxMetadata("p", uid, "default")
    return PodSandboxStatus(uid, metadata, state, 0, namespace_options=NamespaceOption(userns_options=options))


def test_the_next_node_process_knows_what_was_decided():
    users = manager()
    users.adopt([sandbox("a", 0x7000_0000), sandbox("b", 0), sandbox("b", 0x7001_0000)])
    assert first_of(users.options(pod("a"))) == 0x7000_0000
    assert users.options(pod("b")).mode == "NODE"
    assert first_of(users.options(pod("c"))) == 0x7001_0000


def test_a_range_of_an_ended_sandbox_that_is_another_pods_by_now_stays_that_ones():
    users = manager()
    ended = sandbox("old", 0x7000_0000, PodSandboxState.SANDBOX_NOTREADY)
    users.adopt([ended, sandbox("live", 0x7000_0000)])
    users.release("old")
    assert first_of(users.options(pod("new"))) == 0x7001_0000
    assert first_of(users.options(pod("live"))) == 0x7000_0000


def test_a_range_of_the_clusters_last_life_that_it_does_not_have_any_more_is_not_used():
    users = manager()
    users.adopt([sandbox("a", 0x7200_0000, PodSandboxState.SANDBOX_NOTREADY)])
    assert first_of(users.options(pod("a"))) == 0x7000_0000


def test_the_sandboxs_options_carry_the_range():
    users = UserNamespace("POD", (IDMapping(1, 0, 2),), (IDMapping(1, 0, 2),))
    assert namespace_options(pod(), users).userns_options == users
    assert namespace_options(pod()).userns_options.mode == "NODE"
