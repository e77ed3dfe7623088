"""`up --audit-log` and `trace --audit-log` as the real commands: who deleted a Pod, on the kernel."""

import json
from pathlib import Path

import ordinary_user
import pytest
from kubectls import needs_kubectl
from pods import container, pod
from staying import Place
from waiting import eventually

pytestmark = pytest.mark.real_kernel

ENDS = "trap 'exit 0' TERM; while true; do sleep 0.1; done"


@needs_kubectl
def test_a_trace_of_a_cluster_with_an_audit_log_names_who_deleted_a_pod() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        log = place.home / "home/audit.log"
        policy = place.home / "home/policy.yaml"
        rules = [{"level": "None", "verbs": ["get", "list", "watch"]}, {"level": "Metadata"}]
        place.kept += [str(log), str(policy)]
        policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
        place.up("--audit-log", str(log), "--audit-policy", str(policy))
        assert Path(log).stat().st_mode & 0o777 == 0o600
        kubeconfig = place.ok("kubeconfig").strip()
        place.kubectl(kubeconfig, "create", "-f", "-", stdin=json.dumps(pod("ends", container("app", ENDS))))
        place.kubectl(kubeconfig, "wait", "--for=condition=Ready", "--timeout=60s", "pod/ends")
        arguments = ("trace", "pod/ends", "--kubeconfig", kubeconfig, "--audit-log", str(log), "--output", "json")
        with place.start(*arguments) as trace:
            assert trace.stderr is not None
            eventually(lambda: "waiting for the end of Pod ends" in (trace.stderr.readline() if trace.stderr else ""))
            as_alice = ("--as", "alice", "--as-group", "system:masters")
            place.kubectl(kubeconfig, "delete", "pod", "ends", "--grace-period=1", *as_alice)
            out, err = trace.communicate(timeout=120)
        assert trace.returncode == 0, err
        (story,) = json.loads(out)["pods"]
        by = story["decidedBy"]
        assert (by["user"], by["client"], by["sourceIPs"]) == ("alice", "kubectl", ["127.0.0.1"])
        assert by["why"] == "it was deleted by kubectl (user alice, impersonated by kubernetes-admin)"
        accepted = next(each for each in story["records"] if each["kind"] == "DeleteAccepted")["facts"]
        events = [json.loads(line) for line in log.read_text().splitlines()]
        (event,) = [
            each for each in events if each["auditID"] == accepted["auditId"] and each["stage"] != "RequestReceived"
        ]
        assert (event["verb"], event["objectRef"]["name"], event["responseStatus"]["code"]) == ("delete", "ends", 200)
        assert {each["verb"] for each in events}.isdisjoint({"get", "list", "watch"})
        own = json.loads(place.ok("story", "ends", "--output", "json"))["pods"][0]["records"]
        assert next(each["facts"]["auditId"] for each in own if each["kind"] == "DeleteAccepted") == accepted["auditId"]


def test_a_log_or_a_policy_that_cannot_be_used_is_refused_before_the_cluster_starts() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        log, policy = place.home / "home/audit.log", place.home / "home/policy.yaml"
        place.kept += [str(log), str(policy)]
        policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: All\n")
        for arguments, words in (
            (("--audit-policy", str(policy)), "--audit-policy says what --audit-log has"),
            (("--audit-log", str(log), "--audit-policy", str(policy)), "rules[0].level: 'All' is not a level"),
            (("--audit-log", str(place.home / "nowhere/x")), "No such file or directory"),
        ):
            refused = place.run("up", *arguments)
            assert (refused.status, words in refused.err) == (2, True), refused.err
