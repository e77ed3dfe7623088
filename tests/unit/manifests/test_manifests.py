"""Bad manifests: every problem at once, with file, line, document, field, value and the way out."""

import io
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.errors import UserError
from lastcall.manifests.read import load_manifests, missing_namespaces
from lastcall.manifests.yaml_documents import YAMLProblem, read_documents, written

DATA = Path(__file__).with_name("data")
WORDS = json.loads(DATA.joinpath("words_as_kubectl_reads_them.json").read_text())
"""Texts after `k: ` and what kubectl 1.36.2 makes of them (`kubectl label --local -o json`), null for an error."""
DOCUMENTS = json.loads(DATA.joinpath("documents_as_kubectl_reads_them.json").read_text())
"""Whole files in the same way."""
"""(word, what kubectl 1.36.2 makes of `k: WORD`, in JSON; None where it refuses it): `kubectl annotate --local`
of an object with this field."""
YAML_VALUES = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text("abyYnNeE~0127.:-+<=!#'\" \n", max_size=6)
)

KEYS = st.text("abynYN~0.<=!", max_size=4)

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: {name}
spec:
  containers:
    - name: app
      image: busybox:1.36
"""


@pytest.fixture
def load(tmp_path):
    def load(*texts, **options):
        files = []
        for number, text in enumerate(texts, 1):
            file = tmp_path / f"m{number}.yaml"
            file.write_text(text)
            files.append(str(file))
        return load_manifests(files, note=print, **options)

    return load


def problems(load, *texts):
    with pytest.raises(UserError) as error:
        load(*texts)
    return str(error.value).splitlines()


def test_documents_lists_and_files_are_applied_namespaces_first_and_pods_last(load):
    text = (
        POD.format(name="a")
        + "---\napiVersion: v1\nkind: List\nitems:\n"
        + "- {apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}\n"
        + "- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n---\n---\n# nothing\n"
    )
    manifests = load(text, POD.format(name="b"))
    assert [(m.resource.kind, m.obj["metadata"]["name"]) for m in manifests] == [
        ("Namespace", "shop"),
        ("Service", "s"),
        ("Pod", "a"),
        ("Pod", "b"),
    ]
    assert manifests[-1].obj["metadata"]["namespace"] == "default"


WIDGET = """\
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
"""
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: SCOPE
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
"""


@pytest.mark.parametrize(("scope", "namespace"), [("Namespaced", "default"), ("Cluster", None)])
def test_objects_of_a_kind_that_the_manifests_define_come_after_its_definition(load, scope, namespace):
    definition = DEFINITION.replace("SCOPE", scope)
    manifests = load("---\n".join((WIDGET, POD.format(name="a"))), definition)
    assert [m.resource.kind for m in manifests] == ["CustomResourceDefinition", "Widget", "Pod"]
    assert (manifests[1].resource.plural, manifests[1].resource.namespaced) == ("widgets", scope == "Namespaced")
    assert manifests[1].obj["metadata"].get("namespace") == namespace


def test_a_version_that_the_definition_does_not_serve_is_told_with_the_one_it_serves(load):
    text = "---\n".join((DEFINITION.replace("SCOPE", "Cluster"), WIDGET.replace("/v1", "/v2"), POD.format(name="a")))
    (problem,) = problems(load, text)
    assert "'example.com/v2' has no kind Widget: write `apiVersion: example.com/v1`" in problem


def test_a_directory_is_read_in_order_and_not_below(tmp_path):
    (tmp_path / "b.yml").write_text(POD.format(name="b"))
    (tmp_path / "a.yaml").write_text(POD.format(name="a"))
    (tmp_path / "notes.txt").write_text("no manifest")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "c.yaml").write_text("not: [read")
    assert [m.obj["metadata"]["name"] for m in load_manifests([str(tmp_path)])] == ["a", "b"]


def test_stdin_is_a_source_and_only_once():
    assert len(load_manifests(["-"], stdin=io.StringIO(POD.format(name="a")))) == 1
    with pytest.raises(UserError, match="only once"):
        load_manifests(["-", "-"], stdin=io.StringIO(POD.format(name="a")))


def test_a_file_that_is_named_twice_is_read_once_and_that_is_said(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(POD.format(name="a"))
    notes: list[str] = []
    assert len(load_manifests([str(path), str(path)], note=notes.append)) == 1
    assert notes == [f"{path} is given twice and read once: a second Pod needs another name"]


def test_json_is_yaml(load):
    spec = '{"containers": [{"name": "c", "image": "i"}]}'
    text = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": ' + spec + "}"
    assert len(load(text)) == 1


def test_all_problems_of_all_documents_are_told_at_once(load):
    broken = POD.format(name="a").replace("image:", "imaeg:") + "---\nkind: Pod\n---\n- a\n- b\n"
    found = problems(load, broken, "apiVersion: v1\nkind: Pood\n", "a: [1\n")
    assert len(found) >= 5
    assert any("m1.yaml:8: document 1 (Pod a): spec.containers[0].imaeg: not a field of Pod" in line for line in found)
    assert any("m1.yaml:10: document 2: apiVersion: missing" in line for line in found)
    assert any("document 3: must be an object with apiVersion and kind, is a list of 2" in line for line in found)
    assert any(
        "m2.yaml:2: document 1: kind: 'Pood' of 'v1' is not known; did you mean Pod (v1)? served are" in line
        for line in found
    )
    assert any("m3.yaml:2: not readable as YAML" in line for line in found)


def test_a_second_pod_of_one_name_names_both_places(load):
    (line,) = problems(load, POD.format(name="a") + "---\n" + POD.format(name="a"))
    assert "m1.yaml:13: document 2 (Pod a): metadata.name: a second Pod 'a' (the first is at" in line
    assert "m1.yaml:4)" in line


def test_one_name_in_two_namespaces_is_fine(load):
    other = POD.format(name="a").replace("  name: a\n", "  name: a\n  namespace: shop\n")
    assert missing_namespaces(load(POD.format(name="a"), other)) == ["shop"]


def test_no_pod_at_all_is_said(load):
    (line,) = problems(load, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
    assert line == "no Pod in the manifests (only ConfigMap): add one, or a workload that has some"


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: app, image: busybox}}]}}
"""


def test_owners_of_pods_are_taken_and_created_after_what_their_pods_need(load):
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    loaded = load(POD.format(name="a"), DEPLOYMENT.format(replicas=2), config)
    assert [each.resource.kind for each in loaded] == ["ConfigMap", "Deployment", "Pod"]


def test_a_job_needs_no_selector_for_the_server_makes_one(load):
    job = """\
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: busybox}]}}}
"""
    (loaded,) = load(job)
    assert "selector" not in loaded.obj["spec"]
    lines = problems(load, job.replace("Never", "Often"))  # one of the Pod's, and one of the Job's own
    assert lines and all("spec.template.spec.restartPolicy: " in line for line in lines)


def test_an_owner_that_asks_for_no_pod_is_no_pod(load):
    (line,) = problems(load, DEPLOYMENT.format(replicas=0))
    assert line.startswith("no Pod in the manifests (Deployment web has replicas: 0): add one")


@pytest.mark.parametrize(
    ("api_version", "kind", "words"),
    [
        ("batch/v1", "CronJob", "spec.jobTemplate as a Job (apiVersion batch/v1)"),
        ("extensions/v1beta1", "Deployment", "has no kind Deployment: write `apiVersion: apps/v1`"),
        ("node.k8s.io/v1", "Overhead", "is not known"),
        ("apps/v1", "Pod", "'apps/v1' has no kind Pod: write `apiVersion: v1`"),
        ("app/v1", "Gizmo", "'Gizmo' of 'app/v1' is not known; served are APIService, Binding"),
        ("networking.k8s.oi/v1", "Ingress", "has no kind Ingress: write `apiVersion: networking.k8s.io/v1`"),
        ("kustomize.config.k8s.io/v1beta1", "Kustomization", "kustomize builds it with -k "),
    ],
)
def test_a_kind_that_is_not_served_gets_an_honest_text(load, api_version, kind, words):
    (line,) = problems(load, f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: x}}\n")
    assert words in line


HOOK = """\
apiVersion: {version}
kind: {kind}
metadata:
  name: hook
  annotations: {{helm.sh/hook: "{events}", helm.sh/hook-delete-policy: "{policy}"}}
spec: {spec}
"""
JOB = "{template: {spec: {restartPolicy: Never, containers: [{name: app, image: busybox}]}}}"


def left_out(capsys):
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("skipped")]


@pytest.mark.parametrize(
    ("version", "kind", "events", "policy", "stays"),
    [
        ("v1", "Pod", "test", "", False),
        ("batch/v1", "Job", "pre-install, pre-upgrade", "", False),
        ("v1", "ConfigMap", "test", "", False),
        ("v1", "ConfigMap", "pre-delete", "", False),
        ("v1", "ConfigMap", "pre-install", "before-hook-creation,hook-succeeded", False),
        ("v1", "ConfigMap", "pre-upgrade, pre-install", "before-hook-creation", True),
        ("v1", "ConfigMap", "post-install", "", True),
    ],
)
def test_hooks_of_a_chart_are_left_out_unless_an_installation_leaves_them(
    load, capsys, version, kind, events, policy, stays
):
    hook = HOOK.format(version=version, kind=kind, events=events, policy=policy, spec=JOB)
    hook = hook.replace("spec: ", "data: {} # ") if kind == "ConfigMap" else hook
    manifests = load(POD.format(name="a"), hook)
    assert [each.resource.kind for each in manifests] == ["ConfigMap", "Pod"] if stays else ["Pod"]
    listed = f"skipped, because Helm runs them as hooks: {kind} hook ({events}; "
    assert [line.startswith(listed) for line in left_out(capsys)] == ([] if stays else [True])


def test_a_hook_that_is_all_there_is_is_tried(load, capsys):
    (manifest,) = load(HOOK.format(version="batch/v1", kind="Job", events="pre-upgrade", policy="", spec=JOB))
    assert manifest.resource.kind == "Job"
    assert left_out(capsys) == []


def test_a_cron_job_beside_other_pods_is_left_out(load, capsys):
    cron_job = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\nspec: {}\n"
    (manifest,) = load(POD.format(name="a"), cron_job)
    assert manifest.resource.kind == "Pod"
    (line,) = left_out(capsys)
    assert "CronJob nightly (" in line


MONITOR = "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: cart}\nspec: {}\n"


def test_kinds_of_other_products_are_left_out_and_listed(load, capsys):
    knative = MONITOR.replace("monitoring.coreos.com", "serving.knative.dev").replace("ServiceMonitor", "Service")
    (manifest,) = load(POD.format(name="a"), MONITOR, knative)
    assert manifest.resource.kind == "Pod"
    (line,) = left_out(capsys)
    assert "ServiceMonitor cart (monitoring.coreos.com/v1; " in line
    assert "Service cart (serving.knative.dev/v1; " in line


def test_nothing_but_kinds_of_other_products_is_no_pod(load):
    (line,) = problems(load, MONITOR)
    assert line.startswith("no Pod in the manifests (nothing besides what was skipped)")


@pytest.mark.parametrize(
    ("text", "place", "command"),
    [
        (POD.format(name="{{ .Values.name }}"), "m1.yaml:4: ", "helm template RELEASE CHART"),
        (
            "{{- if .Values.on }}\n" + POD.format(name="a") + "{{- end }}\n",
            "m1.yaml:1: ",
            "helm template RELEASE CHART",
        ),
        (POD.format(name="a-${STAGE}"), "m1.yaml:4: document 1 (Pod a-${STAGE}): metadata.name: ", "envsubst < FILE"),
        (POD.format(name="a").replace("1.36", "${TAG:-1}"), "m1.yaml:8: ", "envsubst < FILE"),
    ],
)
def test_a_template_is_recognised_with_the_command_that_renders_it(load, text, place, command):
    (line,) = problems(load, text)
    assert place in line
    assert f"this is an unrendered template; render it first: {command} | lastcall … -" in line


def test_marks_that_kubernetes_takes_are_no_template(load):
    (manifest,) = load(POD.format(name="a") + "      args: ['${HOME}', '{{ . }}']\n")
    assert manifest.obj["spec"]["containers"][0]["args"] == ["${HOME}", "{{ . }}"]


def test_a_missing_image_and_an_invalid_name_are_told_by_field_and_line(load):
    text = POD.format(name="Not_A_Name").replace("      image: busybox:1.36\n", "")
    found = problems(load, text)
    assert any("m1.yaml:4: document 1 (Pod Not_A_Name): metadata.name: Invalid value" in line for line in found)
    assert any(
        "m1.yaml:7: document 1 (Pod Not_A_Name): spec.containers[0].image: Required value" in line for line in found
    )


def test_a_value_of_the_wrong_type_is_told(load):
    (line,) = problems(load, POD.format(name="a").replace("  containers:", "  hostNetwork: 3\n  containers:"))
    assert "m1.yaml:6" in line
    assert "spec.hostNetwork: expected true or false, found the number 3" in line


def test_metadata_that_is_no_object_and_a_namespace_where_none_belongs_are_told(load):
    text = "apiVersion: v1\nkind: Pod\nmetadata: web\n---\n"
    text += "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: b}\n"
    found = problems(load, text)
    assert any("metadata: is 'web', must be an object" in line for line in found)
    assert any("metadata.namespace: 'b': a Namespace has no namespace" in line for line in found)


def test_files_that_cannot_be_read_are_named(tmp_path):
    binary = tmp_path / "image.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    empty = tmp_path / "empty.yaml"
    empty.write_text("# nothing\n")
    bare = tmp_path / "bare"
    bare.mkdir()
    with pytest.raises(UserError) as error:
        load_manifests([str(tmp_path / "none.yaml"), str(binary), str(empty), str(bare)])
    found = str(error.value).splitlines()
    assert any("none.yaml: No such file or directory" in line for line in found)
    assert any("image.yaml: not UTF-8 text" in line for line in found)
    assert any("empty.yaml: no object found" in line for line in found)
    assert any("bare: no manifest in this directory" in line for line in found)


def test_a_list_without_items_is_told(load):
    (line,) = problems(load, "apiVersion: v1\nkind: List\nitems: 3\n")
    assert "items: must be a list of objects, is 3" in line


def test_a_problem_in_a_list_is_told_at_its_line(load):
    items = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n    nmae: b\n"
    found = problems(load, items)
    assert "m1.yaml:8" in found[0]
    assert "metadata.nmae" in found[0]


# -- YAML itself


def read(text):
    return [document.value for document in read_documents(text)]


def test_dates_stay_text_and_keys_become_text():
    assert read("a: 2001-12-14\n1: x\ntrue: z\n0x10: n\n") == [{"a": "2001-12-14", "1": "x", "true": "z", "16": False}]


def test_tags_of_other_programs_make_nothing():
    assert read("a: !!python/object:os.system x\nb: !!binary aGk=\nc: !x {d: !y e}\n") == [
        {"a": "x", "b": "hi", "c": {"d": "e"}}
    ]


@given(st.recursive(YAML_VALUES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)))
def test_what_is_written_is_read_as_it_was(value):
    assert read(written({"v": value})) == read(written({"v": value}, flow=True)) == [{"v": value}]


@pytest.mark.parametrize("line", WORDS, ids=lambda line: repr(line[0]))
def test_a_word_is_what_kubectl_takes_it_for(line):
    word, value = line
    if value is None:
        with pytest.raises(YAMLProblem):
            read(f"k: {word}\n")
        return
    (found,) = read(f"k: {word}\n")
    assert json.loads(json.dumps(found), parse_int=float) == json.loads(value, parse_int=float)
    assert type(found["k"]) in (type(json.loads(value)["k"]), float)


@pytest.mark.parametrize("line", DOCUMENTS, ids=lambda line: repr(line[0][-30:]))
def test_documents_are_separated_as_by_kubectl(line):
    text, documents = line
    if documents is None:
        with pytest.raises(YAMLProblem):
            [document["apiVersion"] + document["kind"] for document in read(text)]
    else:
        assert read(text) == documents


def test_json_values_one_after_the_other_keep_their_lines():
    documents = list(read_documents('{"a": 1}\n\n{"a":\n {"b": 2}}\n{"a": 3}\n'))
    assert [(each.value, each.line) for each in documents] == [({"a": 1}, 1), ({"a": {"b": 2}}, 3), ({"a": 3}, 5)]
    assert documents[1].line_of("a.b") == 4


def test_a_field_that_a_merge_key_brought_has_the_line_of_where_it_is_written():
    (document,) = read_documents("a: &a {p: 1, q: 1}\nb:\n  p: 2\n  <<: *a\n  q: 2\n")
    assert document.value["b"] == {"p": 1, "q": 2}
    assert [document.line_of(path) for path in ("b.p", "b.q")] == [1, 5]


def test_a_key_that_is_there_twice_is_noted_and_the_last_one_counts(load, capsys):
    (manifest,) = load(POD.format(name="a").replace("  name: a\n", "  labels: {a: x, a: z}\n  name: a\n"))
    assert manifest.obj["metadata"]["labels"] == {"a": "z"}
    assert "m1.yaml:4: key 'a' is given twice (first on line 4): the last one counts" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("a: .nan\n", "not a value of the Kubernetes API", 1),
        ("a: !!int x\n", "not readable as YAML", 1),
        ("a: b: c\n", "not readable as YAML", 1),
        ("a: \x07\n", "not readable as YAML", 1),
        ("&a [*a]\n", "", 1),
        ("[" * 3000 + "]" * 3000, "nested more than 100 levels deep", 1),
        ("- " * 300_000, "nested more than 100 levels deep", 1),
        ("? [a]\n: 1\n", "a key must be a string", 1),
        ("~: 1\n", "a key must be a string", 1),
    ],
)
def test_hostile_yaml_is_a_problem_with_a_line_and_never_a_crash(text, words, line):
    with pytest.raises(YAMLProblem) as error:
        read(text)
    assert words in str(error.value)
    assert error.value.line == line


def test_a_few_lines_cannot_stand_for_a_machines_memory():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(YAMLProblem, match="aliases written out"):
        read("\n".join(lines))


def test_the_line_of_a_field_that_is_not_there_is_that_of_its_parent():
    (document,) = read_documents("a:\n  b:\n  - c: 1\n    d: 2\n")
    assert [document.line_of(path) for path in ("a.b[0].d", "a.b[0].x.y", "a.b[7]", "z", "")] == [4, 3, 2, 1, 1]


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("replicas: 2", "replcias: 2", 'spec.replcias: not a field of Deployment: did you mean "replicas"?'),
        ("image: busybox", "imagee: busybox", 'imagee: not a field of Deployment: did you mean "image"?'),
        ("replicas: 2", "wings: 2", "spec.wings: not a field of Deployment: correct its name or its place"),
        ("kind: Deployment", "kind: Deploymnt", "is not known; did you mean Deployment (apps/v1)? served are"),
        ("replicas: 2", "replicas: two", 'spec.replicas: expected a whole number, found the text "two"'),
        ("replicas: 2", "replicas: true", "spec.replicas: expected a whole number, found true"),
        ("replicas: 2", "replicas: [1]", "spec.replicas: expected a whole number, found a list"),
        ("replicas: 2", "replicas: 2\n  paused: 1", "spec.paused: expected true or false, found the number 1"),
        ("image: busybox", "image: 7", "image: expected a text (in quotes), found the number 7"),
        ("{name: app, image: busybox}", "{name: app, ports: {}}", "ports: expected a list, found an object"),
    ],
)
def test_a_wrong_word_or_type_is_told_as_a_person_would(load, right, wrong, words):
    text = DEPLOYMENT.format(replicas=2)
    assert right in text
    lines = problems(load, text.replace(right, wrong))
    assert any(words in line for line in lines), lines
    assert not any("Go " in line or "unmarshal" in line for line in lines)


@pytest.mark.parametrize("kind", ["a named pipe", "a device", "a socket"])
@pytest.mark.parametrize("in_a_directory", [True, False])
def test_what_has_no_end_is_named_at_once_and_not_waited_for(tmp_path, kind, in_a_directory):
    path = tmp_path / "pod.yaml"
    if kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    else:
        os.mknod(path, stat.S_IFSOCK | 0o600)
    with pytest.raises(UserError, match=f"pod.yaml: it is {kind}, not a file: give a file"):
        load_manifests([str(tmp_path if in_a_directory else path)])


def test_the_pipe_of_a_shell_is_read():
    reading, writing = os.pipe()
    os.write(writing, b"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}")
    os.close(writing)
    try:
        assert [each.obj["metadata"]["name"] for each in load_manifests([f"/dev/fd/{reading}"])] == ["a"]
    finally:
        os.close(reading)
