"""`lastcall story` on the records of a cluster in virtual time."""

import json
from dataclasses import replace
from datetime import datetime

import pytest
from click.testing import CliRunner
from published_schema import documented
from scenario.programs import ShellPrograms
from virtual_cluster import VirtualCluster, run_cluster

from lastcall.cli.errors import guarded
from lastcall.cli.story import story
from lastcall.endings.search import known_endings
from lastcall.errors import UserError, WorldError
from lastcall.kube.cluster.errors import NotRunning
from lastcall.records import kinds as k

POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  terminationGracePeriodSeconds: %d
  initContainers:
    - name: mesh
      image: busybox
      restartPolicy: Always
      command: [sh, -c, "trap 'echo mesh; exit 0' TERM; while true; do sleep 1; done"]
  containers:
    - name: app
      image: busybox
      command: [sh, -c, "trap 'echo bye; sleep 2; exit 0' TERM; while true; do sleep 1; done"]
      lifecycle: {preStop: {sleep: {seconds: 1}}}
"""

CRASHES = """
apiVersion: v1
kind: Pod
metadata: {name: crashes, namespace: default}
spec:
  containers:
    - {name: app, image: busybox, command: [sh, -c, "echo FATAL no DB_URL; exit 3"]}
"""

SLOW = """
apiVersion: v1
kind: Pod
metadata: {name: slow, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: app
      image: busybox
      command: [sh, -c, "while true; do sleep 1; done"]
      livenessProbe: {exec: {command: ["false"]}, periodSeconds: 1, failureThreshold: 3}
"""


@pytest.fixture(scope="module")
def records():
    """web ended twice (the second time killed), other is ending, runs runs, crashes crashes and slow is restarted."""
    holder = []

    async def scenario(cluster: VirtualCluster) -> None:
        holder.append(ShellPrograms(cluster.world, cluster.volumes.messages))
        for grace in (30, 2):
            await cluster.create(POD % ("web", grace))
            await cluster.wait_ready("web" if grace == 30 else "web~2")
            await cluster.delete("pod/web")
            await cluster.wait_gone("web" if grace == 30 else "web~2")
        await cluster.create(CRASHES)
        await cluster.create(SLOW)
        await cluster.sleep(20)
        for name in ("other", "runs"):
            await cluster.create(POD % (name, 30))
            await cluster.wait_ready(name)
        await cluster.delete("pod/other")
        await cluster.sleep(1.5)
        holder.append(list(cluster.all_records))

    run_cluster(scenario, lambda config, sandbox: holder[0](config, sandbox))
    return holder[1]


@pytest.fixture
def tell(records, monkeypatch):
    """`tell("web", …)`: (exit status, stdout, stderr)."""

    class Client:
        def __init__(self, name):
            self._name = name

        def status(self):
            if self._name != "lastcall":
                raise NotRunning(f"no cluster named {self._name!r} is running")
            return {"kubernetesVersion": "1.36"}

        async def records(self, follow=False, pod_uid=""):
            async def each():
                for record in [*records, records[-1]]:
                    if pod_uid in ("", record.pod_uid):
                        yield record

            return each()

    monkeypatch.setattr("lastcall.cli.story.ControlClient", Client)
    monkeypatch.setattr("lastcall.cli.staying.clusters.names", list)

    def tell(*arguments):
        done = CliRunner().invoke(story, arguments, catch_exceptions=True)
        if isinstance(done.exception, UserError | WorldError):
            return guarded(lambda: _reraise(done.exception)), "", str(done.exception)
        return done.exit_code, done.stdout, done.stderr

    return tell


def _reraise(error):
    raise error


@pytest.mark.parametrize("word", ["pod", "pods", "po", "Pod"])
def test_a_pod_may_be_named_as_kubectl_names_it(tell, word):
    assert tell(f"{word}/web") == tell("web")


@pytest.mark.parametrize("word", ["deployment/web", "default/web", "pod/", "pod/web/app"])
def test_what_is_no_pod_is_refused_with_what_to_write(tell, word):
    status, _, error = tell(word)
    assert status == 2 and repr(word) in error and "write NAME or pod/NAME" in error


def test_a_cluster_after_the_pod_is_refused_with_the_option_for_it(tell):
    status, _, error = tell("web", "end-probe")
    assert status == 2 and "(end-probe)" in error and "write --cluster end-probe" in error


@pytest.mark.parametrize(("there", "meant"), [(["ci"], "ci"), (["ci", "dev"], "lastcall"), ([], "lastcall")])
def test_without_a_name_the_only_cluster_is_meant(tell, monkeypatch, there, meant):
    monkeypatch.setattr("lastcall.cli.staying.clusters.names", lambda: there)
    status, _, error = tell("web")
    assert (status, error) == ((3, "") if meant == "lastcall" else (1, error))
    assert meant == "lastcall" or "no cluster named 'ci' is running" in error


def test_the_latest_of_several_pods_of_one_name_is_told(tell):
    status, out, _ = tell("web")
    assert status == 3
    assert "default/web was killed" in out
    assert "grace 2 s" in out


def test_a_uid_or_its_beginning_picks_an_older_one(tell, records):
    first = next(r.pod_uid for r in records if r.kind == k.POD_CREATED)
    for uid in (first, first[:8]):
        status, out, _ = tell("web", "--uid", uid)
        assert (status, "default/web ended gracefully" in out) == (0, True)
    assert tell("--uid", first)[0] == 0


def test_without_the_object_the_records_tell_of_sidecars_hooks_and_phase(tell):
    _, out, _ = tell("web", "--output", "json")
    (pod,) = json.loads(out)["pods"]
    kinds = {each["name"]: each["kind"] for each in pod["containers"]}
    assert kinds == {"mesh": "sidecar", "app": "container"}
    assert pod["node"] == "node-1"
    assert pod["phase"] == "Failed"
    assert pod["gone"] is not None  # from the API server: no client looked on
    assert pod["ongoing"] is False


def test_a_pod_that_is_ending_is_told_as_far_as_it_has_come(tell):
    status, out, _ = tell("other")
    assert status == 0
    assert "default/other is ending" in out
    assert "still runs, SIGTERM was sent at" in out
    (pod,) = json.loads(tell("other", "--output", "json")[1])["pods"]
    assert pod["ongoing"] is True


def test_a_pod_that_runs_has_no_end_and_the_error_says_how_to_make_one(tell):
    status, _, error = tell("runs")
    assert status == 2
    assert "Pod default/runs of cluster 'lastcall' is running, and none of its containers has ended yet" in error
    assert "kubectl delete pod runs -n default" in error


def test_a_pod_that_runs_and_crashed_before_has_a_story(tell):
    status, out, _ = tell("crashes")
    assert status == 3
    out = " ".join(out.split())
    assert "default/crashes is not running" in out
    assert "app crashed" in out and "(exit code 3): nothing had told it to stop" in out
    assert "The last line that it printed: FATAL no DB_URL" in out
    (pod,) = json.loads(tell("crashes", "--output", "json")[1])["pods"]
    assert (pod["ongoing"], pod["outcome"]) == (True, "crashed")
    assert {(run["exitCode"], run["endedBy"]) for run in pod["earlierEnds"]} == {(3, "itself")}


def test_a_pod_that_runs_and_was_restarted_by_its_liveness_probe_has_a_story(tell):
    status, out, _ = tell("slow")
    assert status == 3
    out = " ".join(out.split())
    did = "ended" if "default/slow is not running" in out else "restarted"
    assert f"The kubelet {did} app" in out and "because its livenessProbe failed" in out
    assert "If it starts slowly, a startupProbe with the same check" in out
    (pod,) = json.loads(tell("slow", "--output", "json")[1])["pods"]
    assert pod["outcome"] == "restarted"
    assert pod["earlierEnds"][0]["failedProbe"]["succeededBefore"] is False


@pytest.mark.parametrize("arguments", [("nope",), ("web", "-n", "shop"), ("--uid", "zzz")])
def test_an_unknown_pod_is_an_error_that_names_the_known_ones(tell, arguments):
    status, _, error = tell(*arguments)
    assert status == 2
    assert "knows no Pod" in error
    assert "default/other, default/web" in error


def test_an_ambiguous_uid_wants_more_of_it(tell):
    status, _, error = tell("--uid", "")
    assert status == 2
    assert "write more of it" in error


def test_without_a_pod_all_endings_are_listed_the_latest_last(tell):
    status, out, _ = tell()
    lines = out.splitlines()
    assert status == 0
    assert lines[0].split() == ["NAMESPACE", "NAME", "UID", "DELETED", "GRACE", "GONE", "AFTER", "HOW", "IT", "ENDED"]
    assert [line.split()[1] for line in lines[1:4]] == ["web", "web", "other"]
    datetime.strptime(lines[1].split()[3], "%Y-%m-%dT%H:%M:%SZ")
    assert lines[1].endswith("ended gracefully")
    assert lines[2].endswith("was killed")
    assert lines[3].endswith("is ending")
    assert lines[4] == "default/crashes is not running: lastcall story crashes -n default"
    assert lines[5].startswith("default/slow is ") and lines[5].endswith(": lastcall story slow -n default")
    document = json.loads(tell("-o", "json")[1])
    assert documented(document)["schema"] == "lastcall/endings/v2"
    assert [each["outcome"] for each in document["endings"]] == ["graceful", "killed", "unknown"]
    assert tell("-n", "shop")[1].startswith("no Pod of cluster 'lastcall' has ended yet")


def test_all_of_them_fit_in_one_page(tell, tmp_path):
    status, out, err = tell("--output-file", str(tmp_path / "all.html"))
    assert status == 3
    assert "3 Pods: 1 killed, 1 still ending, 1 ended gracefully" in (tmp_path / "all.html").read_text()
    assert "default/web was killed" in out
    assert "Report written to" in err


def test_a_list_needs_no_file(tell, tmp_path):
    assert tell("--output-file", str(tmp_path / "all.txt"))[0] == 2


def test_a_cluster_that_does_not_run_is_the_world_s_error(tell):
    status, _, error = tell("web", "--name", "nowhere")
    assert status == 1
    assert "lastcall up starts one" in error


def test_records_that_came_twice_are_told_once(records):
    once = known_endings(records, "1.36")
    twice = known_endings([*records, *records], "1.36")
    assert [len(e.entries) for e in once] == [len(e.entries) for e in twice]


def test_records_of_older_versions_without_containers_make_a_story_too(records):
    old = [replace(r, facts={key: value for key, value in r.facts.items() if key != "containers"}) for r in records]
    assert [e.outcome for e in known_endings(old, "1.36")][:2] == ["graceful", "killed"]


# -- --follow


@pytest.mark.loopback
def test_a_pod_that_has_gone_is_told_step_by_step_and_then_whole(tell):
    status, out, _ = tell("web", "--follow")
    assert status == 3
    steps, _, report = out.partition("default/web was killed")
    assert "SIGTERM" in steps and "SIGKILL" in steps and report
    assert steps.index("SIGTERM") < steps.index("SIGKILL")


@pytest.mark.loopback
def test_followed_with_json_line_each_record_is_a_line(tell, records):
    status, out, _ = tell("web", "--follow", "-o", "json-line")
    lines = [json.loads(line) for line in out.splitlines()]
    assert status == 3
    uid = lines[0]["podUid"]
    assert [line["id"] for line in lines] == [r.id for r in records if r.pod_uid == uid]
    assert {line["schema"] for line in lines} == {"lastcall/record/v1"}
    for line in lines:
        documented(line)


@pytest.mark.loopback
def test_followed_with_json_stdout_is_the_document_alone(tell):
    status, out, err = tell("web", "--follow", "-o", "json")
    (pod,) = json.loads(out)["pods"]
    assert (status, pod["outcome"]) == (3, "killed") and "SIGKILL" in err


@pytest.mark.loopback
def test_a_cluster_that_ends_in_the_middle_is_the_world_s_error(tell):
    status, _, err = tell("other", "--follow")
    assert status == 1 and "the cluster ended before Pod default/other did" in err
    status, _, err = tell("runs", "--follow")
    assert status == 1 and "the cluster ended before Pod default/runs did" in err


def test_what_is_followed_must_be_named_and_known(tell):
    assert tell("--follow")[0] == 2
    status, _, err = tell("nobody", "--follow")
    assert status == 2 and "knows no Pod nobody" in err
