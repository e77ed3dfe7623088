"""kubectl's verbs, each with the kubectl on PATH, 1.20, 1.36 and 1.37, against a whole cluster on the real kernel.

Output is held against what a real Kubernetes 1.36.2 answered where it depends on neither time nor names.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time

import pytest
from kubectls import EVERY, Kubectl
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, pytest.mark.parametrize("admin", EVERY, indirect=True, scope="module")]

WEB = """\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 5
  containers:
  - {name: main, image: "busybox:1.36", command: [sh, -c, "echo one; echo two; echo three; exec sleep 3600"]}
"""
TWO = """\
apiVersion: v1
kind: Pod
metadata: {name: two, labels: {app: two}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: "busybox:1.36", command: [sh, -c, "echo main; exec sleep 3600"]}
  - {name: side, image: "busybox:1.36", command: [sh, -c, "echo side; exec sleep 3600"]}
"""
STUBBORN = """\
apiVersion: v1
kind: Pod
metadata: {name: stubborn}
spec:
  terminationGracePeriodSeconds: 60
  containers:
  - {name: main, image: "busybox:1.36", command: [sh, -c, "trap '' TERM; while :; do sleep 1; done"]}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, name: http}]}
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '%s'}\n"
BAD = """\
apiVersion: v1
kind: Pod
metadata: {name: bad}
spec:
  contaniers: []
  containers:
  - {name: Main, image: "busybox:1.36", ports: [{containerPort: 99999}]}
"""
INVALID = (
    'The Pod "bad" is invalid: \n'
    '* spec.containers[0].name: Invalid value: "Main": a lowercase RFC 1123 label must consist of lower case '
    "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or "
    "'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')\n"
    "* spec.containers[0].ports[0].containerPort: Invalid value: 99999: must be between 1 and 65535, inclusive\n"
)


def is_connected(process: "subprocess.Popen[str]") -> bool:
    """Whether a kubectl talks to the server. What it asks first is on its way then."""
    for fd in os.listdir(f"/proc/{process.pid}/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{process.pid}/fd/{fd}").startswith("socket:"):
                return True
    return False


def create(kubectl: Kubectl, *manifests: str) -> None:
    kubectl("create", "-f", "-", stdin="---\n".join(manifests))


def ready(kubectl: Kubectl, *names: str) -> None:
    kubectl("wait", "--for=condition=Ready", "--timeout=60s", *(f"pod/{name}" for name in names))


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


# -- the server ----------------------------------------------------------------------------------------------------


def test_version_names_both_sides(admin: Kubectl) -> None:
    version = json.loads(admin("version", "-o", "json"))
    assert version["serverVersion"]["gitVersion"] == "v1.36.2"
    assert version["clientVersion"]["gitVersion"].startswith("v{}.{}.".format(*admin.version))


def test_api_resources_and_versions(admin: Kubectl) -> None:
    header, *rows = lines(admin("api-resources"))
    assert header == ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    assert ["pods", "po", "v1", "true", "Pod"] in rows
    assert ["endpointslices", "discovery.k8s.io/v1", "true", "EndpointSlice"] in rows
    assert ["selfsubjectreviews", "authentication.k8s.io/v1", "false", "SelfSubjectReview"] in rows
    assert "namespaces" not in admin("api-resources", "--namespaced=true", "-o", "name").split()
    assert {"v1", "discovery.k8s.io/v1", "events.k8s.io/v1"} <= set(admin("api-versions").split())


def test_explain_tells_fields_and_types(admin: Kubectl) -> None:
    out = admin("explain", "pod.spec.containers.livenessProbe")
    assert re.search(r"httpGet\t<(HTTPGetAction|Object)>", out)
    assert "initialDelaySeconds\t<integer>" in out
    out = admin("explain", "pods.spec.containers")
    assert "name\t<string> -required-" in out
    out = admin("explain", "deployment.spec.strategy", "--recursive")
    assert re.search(r"rollingUpdate\t<\w+>\n +maxSurge\t<\w+>\n +maxUnavailable\t<\w+>\n +type\t<string>", out)
    assert admin("explain", "pod.spec.nope", status=1) == 'error: field "nope" does not exist\n'


def test_auth_can_i_and_whoami(admin: Kubectl) -> None:
    assert admin("auth", "can-i", "delete", "pods") == "yes\n"
    code, out, err = admin.run("auth", "can-i", "delete", "pods", "--as=system:serviceaccount:default:default")
    assert (code, out, err) == (1, "no\n", "")
    listed = admin("auth", "can-i", "--list", "--as=bob", "--as-group=devs")
    assert "selfsubjectaccessreviews.authorization.k8s.io" in listed and "*.*" not in listed
    if admin.version >= (1, 28):
        assert lines(admin("auth", "whoami"))[:2] == [["ATTRIBUTE", "VALUE"], ["Username", "kubernetes-admin"]]
        groups = json.loads(admin("auth", "whoami", "-o", "json"))["status"]["userInfo"]["groups"]
        assert groups == ["system:masters", "system:authenticated"]


# -- create, apply, replace ----------------------------------------------------------------------------------------


def test_create_f_validates_before_it_sends_or_lets_the_server_do_it(kubectl: Kubectl) -> None:
    err = kubectl("create", "-f", "-", stdin=BAD, status=1)
    if kubectl.version >= (1, 25):
        assert err == (
            'Error from server (BadRequest): error when creating "STDIN": Pod in version "v1" cannot be handled as a '
            'Pod: strict decoding error: unknown field "spec.contaniers"\n'
        )
        warned = kubectl("create", "-f", "-", "--validate=warn", stdin=BAD, status=1)
        assert warned == 'Warning: unknown field "spec.contaniers"\n' + INVALID
        assert kubectl("create", "-f", "-", "--validate=ignore", stdin=BAD, status=1) == INVALID
    else:
        assert err == (
            'error: error validating "STDIN": error validating data: ValidationError(Pod.spec): unknown field '
            '"contaniers" in io.k8s.api.core.v1.PodSpec; if you choose to ignore these errors, turn validation off '
            "with --validate=false\n"
        )
        warned = kubectl("create", "-f", "-", "--validate=false", stdin=BAD, status=1)
        assert warned == 'Warning: unknown field "spec.contaniers"\n' + INVALID


def test_a_kind_that_does_not_exist_is_named(kubectl: Kubectl) -> None:
    err = kubectl("apply", "-f", "-", stdin=WEB.replace("kind: Pod", "kind: Podd"), status=1)
    assert 'no matches for kind "Podd" in version "v1"' in err


def test_create_says_what_is_there_already(kubectl: Kubectl) -> None:
    assert kubectl("create", "-f", "-", stdin=SERVICE) == "service/web created\n"
    err = kubectl("create", "-f", "-", stdin=SERVICE, status=1)
    message = 'Error from server (AlreadyExists): error when creating "STDIN": services "web" already exists\n'
    assert err == message


def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    for value, outcome in (("1", "created"), ("1", "unchanged"), ("2", "configured"), ("2", "unchanged")):
        assert kubectl("apply", "-f", "-", stdin=CONFIG % value) == f"configmap/c {outcome}\n"
    assert kubectl.get("configmap", "c")["data"] == {"a": "2"}


def test_apply_keeps_what_others_set_and_takes_back_what_it_had_set(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=WEB.replace("{app: web}", "{app: web, tier: front}"))
    kubectl("label", "pod", "web", "owner=me")
    assert kubectl("apply", "-f", "-", stdin=WEB) == "pod/web configured\n"
    assert kubectl.get("pod", "web")["metadata"]["labels"] == {"app": "web", "owner": "me"}
    kubectl("apply", "-f", "-", stdin=SERVICE)
    ports = SERVICE.replace("[{port: 80, name: http}]", "[{port: 81, name: more}, {port: 80, name: http}]")
    assert kubectl("apply", "-f", "-", stdin=ports) == "service/web configured\n"
    found = kubectl.get("service", "web")["spec"]["ports"]
    assert {port["name"]: port["port"] for port in found} == {"more": 81, "http": 80}
    assert kubectl("apply", "-f", "-", stdin=SERVICE) == "service/web configured\n"
    assert [port["name"] for port in kubectl.get("service", "web")["spec"]["ports"]] == ["http"]


def test_apply_reports_a_field_that_nobody_knows_and_one_that_may_not_change(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=WEB)
    err = kubectl("apply", "-f", "-", stdin=WEB.replace("5", "6"), status=1)
    assert "spec: Forbidden: pod updates may not change fields other than" in err
    err = kubectl("apply", "-f", "-", stdin=CONFIG % "1" + "bogus: 1\n", status=1)
    assert 'unknown field "bogus"' in err


def test_diff_shows_what_apply_would_do(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=CONFIG % "1")
    code, out, _ = kubectl.run("diff", "-f", "-", stdin=CONFIG % "2")
    assert code == 1
    assert '-  a: "1"\n+  a: "2"' in out
    assert kubectl("diff", "-f", "-", stdin=CONFIG % "1") == ""


def test_replace_and_dry_runs(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=CONFIG % "1")
    assert kubectl("replace", "-f", "-", stdin=CONFIG % "2") == "configmap/c replaced\n"
    out = kubectl("apply", "-f", "-", "--dry-run=server", stdin=(CONFIG % "3").replace("name: c", "name: d"))
    assert out == "configmap/d created (server dry run)\n"
    assert "NotFound" in kubectl("get", "configmap", "d", status=1)
    assert "server dry run" in kubectl("delete", "configmap", "c", "--dry-run=server")
    assert kubectl.get("configmap", "c")["data"] == {"a": "2"}


# -- get, describe -------------------------------------------------------------------------------------------------


def test_get_in_every_form(kubectl: Kubectl) -> None:
    create(kubectl, WEB, TWO)
    ready(kubectl, "web", "two")
    header, *rows = lines(kubectl("get", "pods"))
    assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row[:4] for row in rows] == [["two", "2/2", "Running", "0"], ["web", "1/1", "Running", "0"]]
    wide = kubectl("get", "pods", "-o", "wide")
    assert wide.splitlines()[0].split() == [*header, "IP", "NODE", "NOMINATED", "NODE", "READINESS", "GATES"]
    assert re.search(r"web .* 10\.244\.0\.\d+ +node-1 +<none> +<none>", wide)
    assert kubectl("get", "pods", "-o", "name") == "pod/two\npod/web\n"
    assert kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.name}") == "two web"
    columns = kubectl("get", "pods", "-o", "custom-columns=N:.metadata.name,P:.status.phase")
    assert lines(columns) == [["N", "P"], ["two", "Running"], ["web", "Running"]]
    template = "{{range .items}}{{.metadata.name}};{{end}}"
    assert kubectl("get", "pods", "-o", f"go-template={template}") == "two;web;"
    assert kubectl("get", "pods", "--sort-by=.metadata.labels.app", "-o", "name") == "pod/two\npod/web\n"
    assert kubectl("get", "pods", "--sort-by={.spec.terminationGracePeriodSeconds}", "--no-headers").startswith("two ")
    assert "app=web" in kubectl("get", "pods", "--show-labels", "-l", "app=web")
    assert lines(kubectl("get", "pods", "-L", "app", "--no-headers"))[0][-1] == "two"
    assert kubectl("get", "pods", "-l", "app in (two),app!=web", "-o", "name") == "pod/two\n"
    assert kubectl("get", "pods", "--field-selector", "metadata.name=web", "-o", "name") == "pod/web\n"
    assert kubectl.get("pod", "web")["apiVersion"] == "v1"
    assert "apiVersion: v1\n" in kubectl("get", "pod", "web", "-o", "yaml")
    code, out, err = kubectl.run("get", "pods", "-l", "app=nobody")
    assert (code, out, err) == (0, "", f"No resources found in {kubectl.namespace} namespace.\n")
    assert kubectl("get", "pod", "nope", status=1) == 'Error from server (NotFound): pods "nope" not found\n'
    err = kubectl("get", "pods", "--field-selector", "spec.foo=1", status=1)
    assert "field label not supported: spec.foo" in err
    assert 'the server doesn\'t have a resource type "foos"' in kubectl("get", "foos", status=1)


def test_get_of_several_kinds_and_of_all_namespaces(kubectl: Kubectl) -> None:
    create(kubectl, WEB, SERVICE)
    ready(kubectl, "web")
    assert kubectl("get", "pod/web", "svc/web", "-o", "name") == "pod/web\nservice/web\n"
    assert kubectl("get", "all", "-o", "name") == "pod/web\nservice/web\n"
    everywhere = kubectl("get", "pods", "-A")
    assert everywhere.startswith("NAMESPACE ")
    assert [kubectl.namespace, "web"] in [line[:2] for line in lines(everywhere)]


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("nodes", "NAME STATUS ROLES AGE VERSION"),
        ("namespaces", "NAME STATUS AGE"),
        ("services", "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE"),
        ("endpointslices", "NAME ADDRESSTYPE PORTS ENDPOINTS AGE"),
        ("configmaps", "NAME DATA AGE"),
        ("secrets", "NAME TYPE DATA AGE"),
        ("leases", "NAME HOLDER AGE"),
        ("events", "LAST SEEN TYPE REASON OBJECT MESSAGE"),
    ],
)
def test_columns(kubectl: Kubectl, kind: str, columns: str) -> None:
    create(kubectl, WEB, SERVICE, CONFIG % "1")
    kubectl("create", "secret", "generic", "s")
    ready(kubectl, "web")
    shown = ("get", kind, "-A" if kind == "leases" else "--ignore-not-found")
    eventually(lambda: kubectl(*shown))
    header = kubectl(*shown).splitlines()[0]
    assert " ".join(header.split()).removeprefix("NAMESPACE ") == columns


def test_get_w_shows_the_way_of_a_pod(kubectl: Kubectl) -> None:
    create(kubectl, WEB)
    ready(kubectl, "web")
    tables = kubectl.start("get", "pods", "-w")
    assert tables.stdout is not None
    assert tables.stdout.readline().split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert tables.stdout.readline().split()[:3] == ["web", "1/1", "Running"], "from here on it watches"
    create(kubectl, TWO)
    ready(kubectl, "two")
    states = [tables.stdout.readline().split()[:3] for _ in range(3)]
    assert states[0][:2] == ["two", "0/2"]
    assert states[0][2] in ("Pending", "ContainerCreating")
    tables.send_signal(signal.SIGINT)
    tables.communicate(timeout=60)
    watching = kubectl.start("get", "pod", "web", "-w", "-o", "custom-columns=D:.metadata.deletionGracePeriodSeconds")
    assert watching.stdout is not None
    assert [watching.stdout.readline() for _ in range(2)] == ["D\n", "<none>\n"]
    kubectl("delete", "pod", "web")
    seen = []
    while not seen or seen[-1] not in ("0\n", ""):  # the watch may be behind the deletion
        seen.append(watching.stdout.readline())
    assert seen[0] == "5\n" and seen[-1] == "0\n"
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=60)


def test_describe_pod_service_and_node(kubectl: Kubectl) -> None:
    create(kubectl, WEB, SERVICE)
    ready(kubectl, "web")
    eventually(lambda: "10.244" in kubectl("get", "endpointslices"))
    eventually(lambda: "Started" in reasons(kubectl, "web"))
    pod = kubectl("describe", "pod", "web")
    for pattern in (
        r"Name: +web\n", r"Node: +node-1/172\.18\.0\.2\n", r"Labels: +app=web\n", r"Status: +Running\n",
        r"IP: +10\.244\.0\.\d+\n", r"Container ID: +lastcall://\w{64}\n", r"Image: +busybox:1\.36\n",
        r"State: +Running\n", r"Ready: +True\n", r"Restart Count: +0\n", r"QoS Class: +BestEffort\n",
        r"PodReadyToStartContainers +True", r"Normal +Scheduled +.*default-scheduler +Successfully assigned",
        r"Normal +Started +.*kubelet",
        r"Tolerations: +node.kubernetes.io/not-ready:NoExecute op=Exists for 300s\n",
    ):  # fmt: skip
        assert re.search(pattern, pod), (pattern, pod)
    service = kubectl("describe", "service", "web")
    assert re.search(r"Selector: +app=web\n", service)
    assert re.search(r"Port: +http +80/TCP\n", service)
    if kubectl.version >= (1, 30):
        # Older ones read v1 Endpoints.
        assert re.search(r"Endpoints: +10\.244\.0\.\d+:80\n", service)
    node = kubectl("describe", "node", "node-1")
    for pattern in (
        r"Name: +node-1\n", r"kubernetes.io/hostname=node-1\n", r"Taints: +<none>\n", r"HolderIdentity: +node-1\n",
        r"Ready +True .*KubeletReady", r"InternalIP: +172\.18\.0\.2\n", r"pods: +110\n", r"Kubelet Version: +v1\.36\.2",
        rf"{re.escape(kubectl.namespace)} +web +0 \(0%\)", r"Allocated resources:",
    ):  # fmt: skip
        assert re.search(pattern, node), (pattern, node)
    missing = kubectl("describe", "pod", "nope", status=1)
    assert missing == 'Error from server (NotFound): pods "nope" not found\n'


def reasons(kubectl: Kubectl, pod: str) -> list[str]:
    """Of a Pod's Events, which are written beside what they tell of, and soon after."""
    table = kubectl(
        "get", "events", "--sort-by=.metadata.creationTimestamp", f"--field-selector=involvedObject.name={pod}"
    )
    return [line[2] for line in lines(table)[1:] if line[2] != "ImageSubstituted"]


def test_events(kubectl: Kubectl) -> None:
    create(kubectl, WEB)
    ready(kubectl, "web")
    eventually(lambda: len(reasons(kubectl, "web")) == 4)
    assert reasons(kubectl, "web") == ["Scheduled", "Pulled", "Created", "Started"]
    if kubectl.version >= (1, 26):
        told = kubectl("events", "--for", "pod/web")
        assert lines(told)[0] == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
        assert "Pod/web" in told
        assert kubectl("events", "--types=Warning") == "" or "Normal" not in kubectl("events", "--types=Warning")


# -- change --------------------------------------------------------------------------------------------------------


def test_label_and_annotate(kubectl: Kubectl) -> None:
    create(kubectl, WEB, TWO)
    assert kubectl("label", "pod", "web", "a=1") == "pod/web labeled\n"
    err = kubectl("label", "pod", "web", "a=2", status=1)
    assert err == "error: 'a' already has a value (1), and --overwrite is false\n"
    assert kubectl("label", "pod", "web", "a=2", "--overwrite") == "pod/web labeled\n"
    kubectl("label", "pods", "--all", "b=1")
    assert kubectl("get", "pods", "-l", "b=1", "-o", "name") == "pod/two\npod/web\n"
    kubectl("label", "pod", "web", "a-")
    assert kubectl.get("pod", "web")["metadata"]["labels"] == {"app": "web", "b": "1"}
    assert kubectl("annotate", "pod", "web", "why=because") == "pod/web annotated\n"
    assert kubectl.get("pod", "web")["metadata"]["annotations"]["why"] == "because"
    assert "invalid label value" in kubectl("label", "pod", "web", "a=b c", status=1)


def test_three_types_of_patches(kubectl: Kubectl) -> None:
    create(kubectl, WEB, SERVICE)
    strategic = '{"spec":{"ports":[{"port":80,"name":"web"}]}}'
    out = kubectl("patch", "service", "web", "-p", '{"spec":{"ports":[{"port":81,"name":"more"}]}}')
    assert out == "service/web patched\n"
    assert len(kubectl.get("service", "web")["spec"]["ports"]) == 2, "lists merge by key"
    kubectl("patch", "service", "web", "--type=merge", "-p", strategic)
    assert len(kubectl.get("service", "web")["spec"]["ports"]) == 1, "lists are replaced"
    assert kubectl("patch", "service", "web", "--type=merge", "-p", strategic) == "service/web patched (no change)\n"
    change = '[{"op":"replace","path":"/spec/ports/0/port","value":82}]'
    kubectl("patch", "service", "web", "--type=json", "-p", change)
    assert kubectl.get("service", "web")["spec"]["ports"][0]["port"] == 82
    err = kubectl("patch", "pod", "web", "-p", '{"spec":{"nodeName":"x"}}', status=1)
    assert err.startswith('The Pod "web" is invalid: spec: Forbidden: pod updates may not change fields other than')
    err = kubectl(
        "patch", "service", "web", "--type=json", "-p", '[{"op":"test","path":"/kind","value":"x"}]', status=1
    )
    assert "testing path /kind" in err or "is invalid" in err


def test_nodes_are_labelled_tainted_and_cordoned(admin: Kubectl) -> None:
    assert admin("taint", "node", "node-1", "k=v:PreferNoSchedule") == "node/node-1 tainted\n"
    assert admin("taint", "node", "node-1", "k-") == "node/node-1 untainted\n"
    assert admin("cordon", "node-1") == "node/node-1 cordoned\n"
    assert admin("cordon", "node-1") == "node/node-1 already cordoned\n"
    assert lines(admin("get", "nodes"))[1][1] == "Ready,SchedulingDisabled"
    assert admin("uncordon", "node-1") == "node/node-1 uncordoned\n"
    admin("label", "node", "node-1", "zone=a")
    assert admin("get", "nodes", "-l", "zone=a", "-o", "name") == "node/node-1\n"
    admin("label", "node", "node-1", "zone-")


# -- wait, delete --------------------------------------------------------------------------------------------------


def test_wait_for_conditions_values_and_deletion(kubectl: Kubectl) -> None:
    create(kubectl, WEB)
    assert kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s") == "pod/web condition met\n"
    if kubectl.version >= (1, 23):
        kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/web", "--timeout=60s")
    err = kubectl("wait", "--for=condition=Nope", "pod/web", "--timeout=1s", status=1)
    assert err == "error: timed out waiting for the condition on pods/web\n"
    waiting = kubectl.start("wait", "--for=delete", "pod/web", "--timeout=60s")
    eventually(lambda: is_connected(waiting))
    time.sleep(0.3)  # it must still wait: nothing to wait for
    assert waiting.poll() is None
    kubectl("delete", "pod", "web")
    assert waiting.communicate(timeout=60) == ("pod/web condition met\n", "")
    if kubectl.version >= (1, 31):
        kubectl("create", "configmap", "later")
        assert kubectl("wait", "--for=create", "configmap/later", "--timeout=5s") == "configmap/later condition met\n"


def test_delete_waits_until_the_pod_is_gone(kubectl: Kubectl) -> None:
    create(kubectl, WEB)
    ready(kubectl, "web")
    out = kubectl("delete", "pod", "web")
    assert out.startswith('pod "web" deleted')
    assert "NotFound" in kubectl("get", "pod", "web", status=1)
    assert "NotFound" in kubectl("delete", "pod", "web", status=1)
    assert kubectl("delete", "pod", "web", "--ignore-not-found") == ""


def test_delete_without_waiting_shortened_and_forced(kubectl: Kubectl) -> None:
    create(kubectl, STUBBORN)
    ready(kubectl, "stubborn")
    kubectl("delete", "pod", "stubborn", "--wait=false")
    assert lines(kubectl("get", "pod", "stubborn"))[1][2] == "Terminating"
    assert kubectl.get("pod", "stubborn")["metadata"]["deletionGracePeriodSeconds"] == 60
    kubectl("delete", "pod", "stubborn", "--grace-period=30", "--wait=false")
    assert kubectl.get("pod", "stubborn")["metadata"]["deletionGracePeriodSeconds"] == 30
    code, out, err = kubectl.run("delete", "pod", "stubborn", "--force", "--grace-period=0")
    assert code == 0
    assert "force deleted" in out
    assert "Immediate deletion does not wait" in err
    assert "NotFound" in kubectl("get", "pod", "stubborn", status=1)


@pytest.mark.parametrize(("arguments", "grace"), [(["--now"], 1), (["--grace-period=7"], 7), (["--grace-period=0"], 1)])
def test_delete_with_a_grace_period(kubectl: Kubectl, arguments: list[str], grace: int) -> None:
    create(kubectl, STUBBORN)
    ready(kubectl, "stubborn")
    kubectl("delete", "pod", "stubborn", *arguments, "--wait=false")
    code, out, _ = kubectl.run("get", "pod", "stubborn", "-o", "jsonpath={.metadata.deletionGracePeriodSeconds}")
    assert (code, out) == (0, str(grace))


def test_delete_by_selector_and_all(kubectl: Kubectl) -> None:
    create(kubectl, WEB, TWO, SERVICE)
    assert kubectl("delete", "pods,services", "-l", "app=two").startswith('pod "two" deleted')
    assert kubectl("get", "pods", "-o", "name") == "pod/web\n"
    kubectl("delete", "pods", "--all", "--now")
    assert kubectl("get", "pods,services", "-o", "name") == "service/web\n"
    assert kubectl("delete", "-f", "-", stdin=SERVICE).startswith('service "web" deleted')


# -- logs ----------------------------------------------------------------------------------------------------------


def test_logs_in_every_form(kubectl: Kubectl) -> None:
    create(kubectl, WEB, TWO)
    ready(kubectl, "web", "two")
    eventually(lambda: kubectl("logs", "web").endswith("three\n") and kubectl("logs", "two", "-c", "main"))
    eventually(lambda: kubectl("logs", "two", "-c", "side"))
    assert kubectl("logs", "web") == "one\ntwo\nthree\n"
    assert kubectl("logs", "web", "--tail=1") == "three\n"
    assert kubectl("logs", "web", "--since=1h") == "one\ntwo\nthree\n"
    assert kubectl("logs", "web", "--limit-bytes=5") == "one\nt"
    stamped = kubectl("logs", "web", "--timestamps")
    assert re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z (one|two|three)\n){3}", stamped)
    assert kubectl("logs", "two", "-c", "side") == "side\n"
    assert sorted(kubectl("logs", "two", "--all-containers").split()) == ["main", "side"]
    assert kubectl("logs", "-l", "app=web") == "one\ntwo\nthree\n"
    assert "container nope is not valid for pod web" in kubectl("logs", "web", "-c", "nope", status=1)
    assert "not found" in kubectl("logs", "nope", status=1)
    err = kubectl("logs", "web", "--previous", status=1)
    assert 'previous terminated container "main" in pod "web" not found' in err


def test_logs_follow_to_the_end(kubectl: Kubectl) -> None:
    create(
        kubectl, WEB.replace("exec sleep 3600", "sleep 1; echo end").replace("spec:", "spec:\n  restartPolicy: Never")
    )
    # Ready it is for a second only.
    eventually(lambda: kubectl.get("pod", "web")["status"]["phase"] != "Pending")
    assert kubectl("logs", "-f", "web") == "one\ntwo\nthree\nend\n"


def test_logs_follow_ends_with_the_pod(kubectl: Kubectl) -> None:
    create(kubectl, WEB)
    ready(kubectl, "web")
    eventually(lambda: kubectl("logs", "web").endswith("three\n"))
    following = kubectl.start("logs", "-f", "web", "--tail=1")
    assert following.stdout is not None
    assert following.stdout.readline() == "three\n"
    deleting = threading.Thread(target=kubectl, args=("delete", "pod", "web", "--now"))
    deleting.start()
    assert following.communicate(timeout=60)[0] == ""
    deleting.join()


def test_logs_of_the_container_before(kubectl: Kubectl) -> None:
    create(kubectl, WEB.replace("exec sleep 3600", "sleep 0.3; exit 3"))
    eventually(lambda: kubectl.get("pod", "web")["status"].get("containerStatuses", [{}])[0].get("restartCount", 0) > 0)
    assert kubectl("logs", "web", "--previous") == "one\ntwo\nthree\n"
    state = lines(kubectl("get", "pod", "web"))[1][2]
    assert state in ("Running", "Error", "CrashLoopBackOff")


def test_an_interrupted_watch_leaves_the_server_well(kubectl: Kubectl) -> None:
    watching: list[subprocess.Popen[str]] = [kubectl.start("get", "pods", "-w") for _ in range(3)]
    time.sleep(0.3)  # kill them at different stages; any is right
    for process in watching:
        process.kill()
        process.communicate(timeout=60)
    create(kubectl, WEB)
    ready(kubectl, "web")
