"""The Pod Security Standards: labels, each rule word for word, which version has it, and what namespaces are told."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import CRONJOBS, DEPLOYMENTS, NAMESPACES, PODS, PODTEMPLATES, SERVICEACCOUNTS
from lastcall.kube.apiserver.admission.pod_security.checks import details, evaluate
from lastcall.kube.apiserver.admission.pod_security.decide import (
    LATEST,
    Level,
    Policy,
    admit,
    changes_matter,
    level_to_look_for,
    policy_of,
    warnings_about,
)
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH

NEWEST = 36
GOOD = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def container(name="a", *, good=True, **more):
    context = more.pop("securityContext", {})
    return {"name": name, "image": "x", "securityContext": {**(GOOD if good else {}), **context}, **more}


def spec(*containers, **more):
    return {"containers": list(containers) or [container()], **more}


def told(level, its, *, annotations=None, version=LATEST, server=NEWEST):
    return details(evaluate(level, version, server, {"annotations": annotations or {}}, its))


def test_a_careful_pod_is_allowed_everywhere():
    for level in ("privileged", "baseline", "restricted"):
        assert told(level, spec()) == ""


@pytest.mark.parametrize(
    ("its", "expected"),
    [
        (
            spec(hostNetwork=True, hostIPC=True, hostPID=True),
            "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
        ),
        (
            spec(container(securityContext={"privileged": True}), container("b", securityContext={"privileged": True})),
            'privileged (containers "a", "b" must not set securityContext.privileged=true)',
        ),
        (
            spec(container(securityContext={"capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN", "CHOWN", "BPF"]}})),
            'non-default capabilities (container "a" must not include "BPF", "SYS_ADMIN" in '
            "securityContext.capabilities.add)",
        ),
        (
            spec(volumes=[{"name": "v", "hostPath": {"path": "/"}}, {"name": "e", "emptyDir": {}}]),
            'hostPath volumes (volume "v")',
        ),
        (
            spec(container(ports=[{"hostPort": 8080}, {"hostPort": 443}, {"containerPort": 1}])),
            'hostPort (container "a" uses hostPorts 443, 8080)',
        ),
        (
            spec(container(ports=[{"hostPort": 80}]), initContainers=[container("i", ports=[{"hostPort": 80}])]),
            'hostPort (containers "i", "a" use hostPort 80)',
        ),
        (
            spec(
                container(
                    livenessProbe={"httpGet": {"host": "1.2.3.4"}},
                    lifecycle={"preStop": {"tcpSocket": {"host": "b"}}},
                )
            ),
            'probe or lifecycle host (container "a" uses probe or lifecycle hosts "1.2.3.4", "b")',
        ),
        (
            spec(container(securityContext={"procMount": "Unmasked"})),
            'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
        ),
        (
            spec(container(securityContext={"seLinuxOptions": {"type": "spc_t", "user": "u"}}),
                 securityContext={"seLinuxOptions": {"role": "r"}}),
            'seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: type "spc_t"; user '
            "may not be set; role may not be set)",
        ),
        (
            spec(container(securityContext={"seccompProfile": {"type": "Unconfined"}}),
                 securityContext={"seccompProfile": {"type": "Unconfined"}}),
            'seccompProfile (pod and container "a" must not set securityContext.seccompProfile.type to "Unconfined")',
        ),
        (
            spec(securityContext={"sysctls": [{"name": "net.ipv4.tcp_rmem"}, {"name": "kernel.msgmax"}]}),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            spec(container(securityContext={"windowsOptions": {"hostProcess": True}})),
            'hostProcess (container "a" must not set securityContext.windowsOptions.hostProcess=true)',
        ),
        (
            spec(container(securityContext={"appArmorProfile": {"type": "Unconfined"}})),
            'forbidden AppArmor profile (container "a" must not set AppArmor profile type to "Unconfined")',
        ),
        (
            spec(hostNetwork=True, volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
            'host namespaces (hostNetwork=true), hostPath volumes (volume "v")',
        ),
    ],
)  # fmt: skip
def test_what_baseline_forbids(its, expected):
    assert told("baseline", its) == expected


def test_baseline_looks_at_the_annotations_of_apparmor():
    key = "container.apparmor.security.beta.kubernetes.io/a"
    assert told("baseline", spec(), annotations={key: "localhost/x"}) == ""
    assert told("baseline", spec(), annotations={key: "unconfined"}) == (
        "forbidden AppArmor profile (annotation must not set AppArmor profile type to "
        '"container.apparmor.security.beta.kubernetes.io/a="unconfined"")'
    )


ESCALATES = 'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false)'
KEEPS = 'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"])'
ROOT = 'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)'
SECCOMP = (
    'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
    '"Localhost")'
)


@pytest.mark.parametrize(
    ("its", "expected"),
    [
        (spec(container(good=False)), f"{ESCALATES}, {KEEPS}, {ROOT}, {SECCOMP}"),
        (
            spec(
                container(securityContext={"runAsNonRoot": None, "seccompProfile": None}),
                securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "Localhost"}},
            ),
            "",
        ),
        (
            spec(container(securityContext={"runAsNonRoot": False}), securityContext={"runAsNonRoot": False}),
            'runAsNonRoot != true (pod and container "a" must not set securityContext.runAsNonRoot=false)',
        ),
        (
            spec(container(securityContext={"runAsUser": 0}), securityContext={"runAsUser": 0}),
            'runAsUser=0 (pod and container "a" must not set runAsUser=0)',
        ),
        (
            spec(container(securityContext={"capabilities": {"add": ["CHOWN", "NET_BIND_SERVICE"]}})),
            'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]; container '
            '"a" must not include "CHOWN" in securityContext.capabilities.add)',
        ),
        (
            spec(volumes=[{"name": "n", "nfs": {}}, {"name": "h", "hostPath": {}}, {"name": "i", "image": {}}]),
            'restricted volume types (volumes "n", "h" use restricted volume types "hostPath", "nfs")',
        ),
        (
            spec(container(securityContext={"seccompProfile": {"type": "Unconfined"}})),
            'seccompProfile (container "a" must not set securityContext.seccompProfile.type to "Unconfined")',
        ),
        (spec(hostNetwork=True), "host namespaces (hostNetwork=true)"),
        (spec(container(good=False), os={"name": "windows"}), ROOT),
    ],
)
def test_what_restricted_forbids(its, expected):
    assert told("restricted", its) == expected


def test_ephemeral_containers_are_looked_at_as_all_others():
    assert told("baseline", spec(ephemeralContainers=[container("e", securityContext={"privileged": True})])) == (
        'privileged (container "e" must not set securityContext.privileged=true)'
    )


RESERVES_PORTS = spec(securityContext={"sysctls": [{"name": "net.ipv4.ip_local_reserved_ports"}]})
UNMASKED = spec(container(securityContext={"procMount": "Unmasked", "runAsUser": 0}), hostUsers=False)


@pytest.mark.parametrize(
    ("level", "version", "server", "its", "forbidden"),
    [
        ("baseline", 26, NEWEST, RESERVES_PORTS, True),
        ("baseline", 27, NEWEST, RESERVES_PORTS, False),
        ("baseline", LATEST, 26, RESERVES_PORTS, True),
        ("baseline", 30, NEWEST, spec(securityContext={"seLinuxOptions": {"type": "container_engine_t"}}), True),
        ("baseline", 31, NEWEST, spec(securityContext={"seLinuxOptions": {"type": "container_engine_t"}}), False),
        ("baseline", 33, NEWEST, spec(container(livenessProbe={"httpGet": {"host": "h"}})), False),
        ("baseline", 34, NEWEST, spec(container(livenessProbe={"httpGet": {"host": "h"}})), True),
        ("baseline", LATEST, 27, spec(container(livenessProbe={"httpGet": {"host": "h"}})), False),
        ("baseline", 99, NEWEST, spec(container(livenessProbe={"httpGet": {"host": "h"}})), True),
        ("baseline", 34, NEWEST, UNMASKED, True),
        ("baseline", 35, NEWEST, UNMASKED, False),
        ("restricted", 35, NEWEST, UNMASKED, True),
        ("restricted", 7, NEWEST, spec(container(securityContext={"allowPrivilegeEscalation": True})), False),
        ("restricted", 8, NEWEST, spec(container(securityContext={"allowPrivilegeEscalation": True})), True),
        ("restricted", 21, NEWEST, spec(container(securityContext={"capabilities": {}})), False),
        ("restricted", 22, NEWEST, spec(container(securityContext={"capabilities": {}})), True),
        ("restricted", 22, NEWEST, spec(container(securityContext={"runAsUser": 0})), False),
        ("restricted", 23, NEWEST, spec(container(securityContext={"runAsUser": 0})), True),
        ("restricted", 18, NEWEST, spec(container(securityContext={"seccompProfile": None})), False),
        ("restricted", 19, NEWEST, spec(container(securityContext={"seccompProfile": None})), True),
    ],
)  # fmt: skip
def test_a_rule_holds_from_its_version_on(level, version, server, its, forbidden):
    assert bool(told(level, its, version=version, server=server)) is forbidden


def test_before_1_19_seccomp_is_asked_of_annotations():
    key = "container.seccomp.security.alpha.kubernetes.io/a"
    assert told("baseline", spec(), annotations={key: "unconfined"}, version=18) == (
        f'seccompProfile (forbidden annotation {key}="unconfined")'
    )
    assert told("baseline", spec(), annotations={key: "unconfined"}, version=19) == ""


# -- labels ----------------------------------------------------------------------------------------------------------

P = "pod-security.kubernetes.io/"


def labelled(name="n", **labels):
    return {
        "metadata": {"name": name, "labels": {f"{P}{key.replace('_', '-')}": value for key, value in labels.items()}}
    }


def labels_of(**labels):
    return labelled(**labels)["metadata"]["labels"]


@pytest.mark.parametrize(
    ("labels", "policy", "wrong"),
    [
        ({}, Policy(), []),
        ({"enforce": "baseline"}, Policy(enforce=Level("baseline")), []),
        (
            {"enforce": "restricted", "enforce_version": "v1.27", "warn": "baseline", "audit_version": "latest"},
            Policy(Level("restricted", 27), Level(), Level("baseline")),
            [],
        ),
        ({"enforce": "strict"}, Policy(enforce=Level("restricted")), ["enforce"]),
        ({"warn": "", "audit": "x"}, Policy(), ["audit", "warn"]),
        ({"enforce": "baseline", "enforce_version": "1.27"}, Policy(enforce=Level("baseline")), ["enforce-version"]),
        ({"warn_version": "v1.027"}, Policy(), ["warn-version"]),
        ({"warn_version": "v2.1"}, Policy(), ["warn-version"]),
    ],
)
def test_what_labels_say(labels, policy, wrong):
    found, errors = policy_of(labels_of(**labels))
    assert found == policy
    assert [error.field for error in errors] == [f"metadata.labels[{P}{label}]" for label in wrong]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"enforce": "baseline"}, "baseline:latest"),
        ({"enforce": "baseline"}, {"enforce": "restricted"}, "restricted:latest"),
        ({"enforce": "restricted"}, {"enforce": "baseline"}, None),
        ({"enforce": "baseline"}, {"enforce": "baseline", "warn": "restricted"}, None),
        ({"enforce": "baseline"}, {"enforce": "privileged"}, None),
        ({"enforce": "baseline", "enforce_version": "v1.20"}, {"enforce": "baseline"}, "baseline:latest"),
    ],
)
def test_when_the_pods_that_are_there_are_looked_at(old, new, expected):
    found = level_to_look_for(labelled(**new), labelled(**old))
    assert (None if found is None else str(found)) == expected


def test_pods_with_the_same_problems_are_told_together():
    def pod(name, **more):
        return {"metadata": {"name": name}, "spec": spec(**more)}

    pods = [
        pod("c", hostNetwork=True),
        pod("fine"),
        pod("b", hostNetwork=True),
        pod("d", hostPID=True, volumes=[{"name": "v", "hostPath": {}}]),
        pod("a", hostNetwork=True),
    ]
    assert warnings_about("n", pods, Level("baseline"), NEWEST) == [
        'existing pods in namespace "n" violate the new PodSecurity enforce level "baseline:latest"',
        "a (and 2 other pods): host namespaces",
        "d: host namespaces, hostPath volumes",
    ]
    assert warnings_about("n", pods[:3], Level("baseline"), NEWEST)[1] == "b (and 1 other pod): host namespaces"
    assert warnings_about("n", pods[1:2], Level("baseline"), NEWEST) == []


def test_of_very_many_pods_one_of_each_owner_is_looked_at_first():
    def pod(number, owner):
        reference = {"uid": owner, "controller": True}
        return {"metadata": {"name": f"p{number}", "ownerReferences": [reference]}, "spec": spec(hostPID=owner == "z")}

    pods = [pod(number, "y") for number in range(3200)] + [pod(9999, "z")]
    assert warnings_about("n", pods, Level("baseline"), NEWEST) == [
        "new PodSecurity enforce level only checked against the first 3000 of 3201 existing pods",
        'existing pods in namespace "n" violate the new PodSecurity enforce level "baseline:latest"',
        "p9999: host namespaces",
    ]


# -- what is looked at -----------------------------------------------------------------------------------------------


def test_templates_are_warned_about_and_never_refused():
    policy = Policy(enforce=Level("restricted"), warn=Level("baseline", 30))
    template = {"metadata": {}, "spec": spec(hostNetwork=True)}
    warning = ['would violate PodSecurity "baseline:v1.30": host namespaces (hostNetwork=true)']
    for resource, obj in (
        (DEPLOYMENTS, {"spec": {"template": template}}),
        (CRONJOBS, {"spec": {"jobTemplate": {"spec": {"template": template}}}}),
        (PODTEMPLATES, {"template": template}),
    ):
        assert admit(resource, {"metadata": {"name": "x"}, **obj}, policy, NEWEST) == warning
    with pytest.raises(StatusError):
        admit(PODS, {"metadata": {"name": "x"}, **template}, policy, NEWEST)


def pod_of(images=("x",), annotations=None, ephemeral=()):
    containers = [{"name": f"c{number}", "image": image} for number, image in enumerate(images)]
    made = {"containers": containers, "ephemeralContainers": [{"name": name, "image": "e"} for name in ephemeral]}
    return {"metadata": {"annotations": annotations or {}}, "spec": made}


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (pod_of(), False),
        (pod_of(annotations={"a": "b"}), False),
        (pod_of(["y"]), True),
        (pod_of(ephemeral=["debug"]), True),
        (pod_of(annotations={"seccomp.security.alpha.kubernetes.io/pod": "x"}), True),
        (pod_of(annotations={"container.seccomp.security.alpha.kubernetes.io/c0": "x"}), True),
        (pod_of(annotations={"container.seccomp.security.alpha.kubernetes.io/other": "x"}), False),
    ],
)
def test_which_updates_of_pods_are_looked_at(new, expected):
    assert changes_matter(new, pod_of()) is expected


def test_through_the_api_pods_are_refused_and_the_client_is_warned(virtual):
    async def scenario(api):
        operations, user = api.server.operations, api.admin._user
        made = await api.admin.create(NAMESPACES, labelled("psa", warn="restricted"))
        await api.admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "psa")
        body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "x"}]}}
        context = RequestContext(user)
        await operations.create(context, PODS, body, "psa")
        restricted = f"{ESCALATES}, {KEEPS}, {ROOT}, {SECCOMP}"
        assert context.warnings == [f'would violate PodSecurity "restricted:latest": {restricted}']

        context = RequestContext(user)
        stricter = {**made, "metadata": {**made["metadata"], **labelled("psa", enforce="restricted")["metadata"]}}
        await operations.update(context, NAMESPACES, stricter, "", "psa")
        assert context.warnings == [
            'existing pods in namespace "psa" violate the new PodSecurity enforce level "restricted:latest"',
            "p: allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile",
        ]

        await api.admin.patch(PODS, "p", {"metadata": {"labels": {"a": "b"}}}, "psa")
        await api.admin.patch(PODS, "p", {"status": {"phase": "Running"}}, "psa", subresource="status")
        image = {"spec": {"containers": [{"name": "a", "image": "y"}]}}
        with pytest.raises(StatusError) as refused:
            await api.admin.patch(PODS, "p", image, "psa", content_type=STRATEGIC_MERGE_PATCH)
        assert refused.value.message == f'pods "p" is forbidden: violates PodSecurity "restricted:latest": {restricted}'
        debug = {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}]}}
        with pytest.raises(StatusError) as refused:
            await api.admin.patch(PODS, "p", debug, "psa", subresource="ephemeralcontainers")
        assert 'violates PodSecurity "restricted:latest"' in refused.value.message

    virtual(scenario)


def test_through_the_api_labels_that_cannot_be_read_are_refused_when_they_are_new(virtual):
    async def scenario(api):
        with pytest.raises(StatusError) as refused:
            await api.admin.create(NAMESPACES, labelled("psa", enforce="strict"))
        assert refused.value.code == 422
        assert refused.value.message == (
            'Namespace "psa" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": '
            "must be one of privileged, baseline, restricted"
        )
        await api.admin.create(NAMESPACES, {"metadata": {"name": "psa"}})
        patch = {"metadata": {"labels": {f"{P}warn-version": "9"}}}
        with pytest.raises(StatusError, match='must be "latest" or'):
            await api.admin.patch(NAMESPACES, "psa", patch)

    virtual(scenario)
