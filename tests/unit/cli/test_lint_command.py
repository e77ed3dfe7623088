"""`lastcall lint`, as typed: exit statuses, outputs, suppressions, `--fix`, kustomize."""

import json
import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from published_schema import problems
from sarif import sarif_problems

from lastcall.cli.certain_errors import tell_certain_errors
from lastcall.cli.errors import guarded
from lastcall.cli.lint import lint
from lastcall.lint.catalogue.lookup import RULES
from lastcall.lint.early import certain_errors
from lastcall.manifests.read import load_manifests

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "lint-v1.schema.json").read_text())

BROKEN = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 20  # enough, we thought
      containers:
        - name: app
          image: registry.example/web:1
          ports: [{name: http, containerPort: 8080}]
          # the load balancer needs some time
          lifecycle: {preStop: {exec: {command: [sleep, "20"]}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports:
    - port: 80
      targetPort: htpp
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 2   # both
  selector: {matchLabels: {app: web}}
"""
GOOD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def typed(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(lint, list(arguments), input=stdin)


def written(text: str = BROKEN, name: str = "web.yaml") -> str:
    Path(name).write_text(text)
    return name


def found(*arguments: str, stdin: str | None = None) -> list[dict]:
    return json.loads(typed(*arguments, "-o", "json", stdin=stdin).stdout)["findings"]


def said_of(error_status: int, *arguments: str, stdin: str | None = None) -> str:
    """What the command says of an error, told as the real command line does."""
    lines: list[str] = []

    def command() -> int:
        result = CliRunner().invoke(lint, list(arguments), input=stdin, standalone_mode=False)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code

    assert guarded(command, lines.append) == error_status
    return "\n".join(lines)


# -- what is found, and the exit status ------------------------------------------------------------------------------


def test_nothing_found_is_status_0():
    result = typed(written(GOOD))
    assert (result.exit_code, result.stdout) == (0, "nothing found in 1 object of 1 file\n")


def test_an_error_is_status_3_and_told_with_its_place_fix_and_certainty():
    result = typed(written())
    assert result.exit_code == 3
    assert "web.yaml:16:23: error hookOutlivesGrace: The preStop hook of app takes 20 s" in result.stdout
    assert "fix: terminationGracePeriodSeconds: 35" in result.stdout
    assert "certain from the manifests" in result.stdout
    assert (
        "depends on the application: try `lastcall run` for how it ends, `lastcall rollout` for lost" in result.stdout
    )
    assert result.stdout.endswith("3 errors, 1 warning in 3 objects of 1 file\n")


@pytest.mark.parametrize(("fail_on", "status"), [("never", 0), ("error", 0), ("warning", 3), ("info", 3)])
def test_fail_on_says_what_is_bad_enough(fail_on: str, status: int):
    text = BROKEN.replace('"20"', '"2"').replace("htpp", "http").replace("minAvailable: 2", "minAvailable: 1")
    assert [each["severity"] for each in found(written(text))] == ["warning"]
    assert typed("web.yaml", "--fail-on", fail_on).exit_code == status


def test_several_files_are_one_application():
    deployment, service, budget = BROKEN.split("---\n")
    names = [written(deployment, "a.yaml"), written(service, "b.yaml"), written(budget, "c.yaml")]
    assert {each["rule"] for each in found(*names)} >= {"targetPortUnresolved", "budgetNeverAllows"}
    assert "targetPortUnresolved" not in {each["rule"] for each in found("b.yaml")}
    assert {each["file"] for each in found(".")} == {"a.yaml", "b.yaml", "c.yaml"}


def test_a_kustomization_among_manifests_is_no_object_and_no_finding():
    written(GOOD, "a.yaml")
    written("resources: [a.yaml]\n", "kustomization.yaml")
    assert found(".") == []


def test_stdin_is_read_as_helm_writes_it():
    (finding,) = found("-", stdin=f"---\n# Source: a.yaml\n{GOOD}---\n# Source: b.yaml\n{GOOD}")
    assert (finding["rule"], finding["file"], finding["line"]) == ("duplicateObject", "<stdin>", 10)


def test_what_is_no_yaml_is_status_2_and_the_others_are_still_checked():
    names = [written(), written("a: [\n", "bad.yaml")]
    result = typed(*names, "-o", "json")
    assert result.exit_code == 2
    rules = {each["rule"]: each for each in json.loads(result.stdout)["findings"]}
    assert rules["unreadable"]["file"] == "bad.yaml"
    assert "budgetNeverAllows" in rules


@pytest.mark.parametrize("text", ["just text", "- 1\n- 2\n", "kind: Pod\n", "apiVersion: v1\nkind: List\n"])
def test_what_is_no_object_is_a_finding(text: str):
    (finding,) = found(written(text))
    assert (finding["rule"], finding["line"]) == ("notAnObject", 1)


def test_a_number_that_json_does_not_have_is_named_with_its_line():
    result = typed(written(GOOD + "data: {a: .inf}\n"))
    assert result.exit_code == 2
    assert "web.yaml:4:1: error unreadable: .inf is not a value" in result.stdout


def test_a_key_that_is_there_twice_is_a_warning_and_the_last_one_counts():
    result = typed(written(GOOD + "data:\n  a: x\n  b: x\n  a: {}\n"))
    assert result.exit_code == 3
    assert "web.yaml:7:3: warning doubledKey: The key 'a' is given twice (first on line 5). The last one counts." in (
        result.stdout
    )
    assert "wrongType" in result.stdout


def test_bad_input_is_status_2():
    assert "No such file" in said_of(2, "missing.yaml")
    assert "no object in" in said_of(2, written("# nothing\n", "empty.yaml"))
    assert typed().exit_code == 2
    assert (
        "it cannot change stdin, a chart's templates, or the sources of a kustomization"
        in typed("-", "--fix", stdin=GOOD).stderr
    )
    Path("latin.yaml").write_bytes(b"a: \xe9\n")
    assert "not UTF-8 text" in said_of(2, "latin.yaml")


def test_the_rules_are_listed():
    lines = typed("--rules").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(RULES)


# -- outputs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [BROKEN, GOOD, "a: [\n", BROKEN.replace("kind: Service", "kind: Servic")])
def test_json_is_as_published(text: str):
    document = json.loads(typed(written(text), "-o", "json").stdout)
    assert list(problems(document, SCHEMA, root=SCHEMA)) == []


def test_a_patch_in_json_is_a_json_patch():
    (finding,) = [each for each in found(written()) if each["rule"] == "budgetNeverAllows"]
    assert finding["patch"] == [
        {"op": "remove", "path": "/spec/minAvailable"},
        {"op": "add", "path": "/spec/maxUnavailable", "value": 1},
    ]
    assert finding["object"] == {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "namespace": "default",
        "name": "web",
    }


def test_what_is_not_in_the_files_is_told_as_not_checked():
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: b, envFrom: [SECRET]}]}\n"
    )
    name = written(pod.replace("SECRET", "{secretRef: {name: db}}"), "p.yaml")
    document = json.loads(typed(name, "-o", "json").stdout)
    assert [(each["kind"], each["name"], each["line"]) for each in document["notHere"]] == [("Secret", "db", 4)]
    assert "Secret db (namespace default), for Pod p, p.yaml:4" in typed(name).stdout


def test_kinds_of_other_products_are_told_as_not_checked():
    monitor = "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: cart}\n"
    name = written(monitor, "monitor.yaml")
    document = json.loads(typed(name, "-o", "json").stdout)
    (each,) = document["notChecked"]
    assert (each["object"]["kind"], each["why"], each["line"]) == ("ServiceMonitor", "kind", 1)
    assert "    ServiceMonitor cart (monitoring.coreos.com/v1), monitor.yaml:1" in typed(name).stdout


def test_a_kustomization_alone_is_answered_with_the_option_that_builds_it():
    name = written("resources: [web.yaml]\n", "kustomization.yaml")
    assert "fix: kustomize builds it: -k ." in str(typed(name).exception)


def test_sarif_has_what_its_readers_need():
    written(BROKEN.replace("# both", "# lastcall-lint: ignore budgetNeverAllows -- drained by hand"))
    document = json.loads(typed("web.yaml", "-o", "sarif").stdout)
    assert sarif_problems(document) == []
    assert document["$schema"].endswith("sarif-2.1.0.json")
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert all(rule["shortDescription"]["text"] and rule["help"]["text"] for rule in rules)
    assert all(rule["helpUri"].endswith(f"/rules/{rule['id']}.html") for rule in rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "web.yaml"
        assert place["region"]["startLine"] >= 1
        assert place["region"]["startColumn"] >= 1
    suppressed = [each for each in run["results"] if "suppressions" in each]
    assert [each["suppressions"] for each in suppressed] == [[{"kind": "inSource", "justification": "drained by hand"}]]


FILES = {
    "unreadable": "a: [\n",
    "doubledKey": "apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata: {name: a}\n",
    "suppressionInvalid": BROKEN.replace("# both", "# lastcall-lint: ignore"),
    "suppressionUnused": BROKEN.replace("# enough, we thought", "# lastcall-lint: ignore budgetNeverAllows -- x"),
}


@pytest.mark.parametrize("rule", FILES)
@pytest.mark.parametrize("source", ["web.yaml", "-"])
def test_findings_about_files_are_valid_sarif(rule: str, source: str):
    written(FILES[rule])
    document = json.loads(typed(source, "-o", "sarif", stdin=FILES[rule]).stdout)
    assert rule in {each["ruleId"] for each in document["runs"][0]["results"]}
    assert sarif_problems(document) == []


def test_names_are_no_links_and_no_placeholders_in_sarif():
    name = "[reviewed](https://a.example) {0}"
    (run,) = json.loads(typed("-", "-o", "sarif", stdin=BROKEN.replace("name: web", f"name: '{name}'")).stdout)["runs"]
    texts = [each["message"]["text"] for each in run["results"]]
    assert any("[reviewed] (https://a.example) {{0}}" in each for each in texts)
    assert not any(name in each for each in texts)


NAMES = [
    (b"a b.yaml", "a%20b.yaml"),
    (b"a:b.yaml", "a%3Ab.yaml"),
    (b"a%20b.yaml", "a%2520b.yaml"),
    (b"#x?y.yaml", "%23x%3Fy.yaml"),
    (b"n\nl.yaml", "n%0Al.yaml"),
    ("\u2603.yaml".encode(), "%E2%98%83.yaml"),
    (b"\xff.yaml", "%FF.yaml"),
]


@pytest.mark.parametrize(("name", "uri"), NAMES, ids=[uri for _, uri in NAMES])
def test_sarif_names_every_file_by_a_uri(name: bytes, uri: str):
    file = written(BROKEN, os.fsdecode(name))
    (run,) = json.loads(typed(file, "-o", "sarif").stdout)["runs"]
    places = [each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]]
    assert places == [uri] * len(ALL)


def test_sarif_of_stdin_has_the_place_that_code_scanning_demands():
    (run,) = json.loads(typed("-", "-o", "sarif", stdin=BROKEN).stdout)["runs"]
    places = [each["locations"][0]["physicalLocation"] for each in run["results"]]
    assert {each["artifactLocation"]["uri"] for each in places} == {"stdin"}
    assert all(each["region"]["startLine"] >= 1 for each in places)
    assert run["results"][0]["locations"][0]["logicalLocations"][0]["fullyQualifiedName"].startswith("<stdin>:")


def test_github_annotations_are_workflow_commands_of_one_line_each():
    lines = typed(written(), "-o", "github").stdout.splitlines()
    assert len(lines) == 4
    for line in lines:
        assert re.match(
            r"::(error|warning|notice) file=web\.yaml,line=\d+,col=\d+,title=\w+ \(\w+ web\)::.+%0Afix%3A|::", line
        )
    assert any(line.startswith("::error file=web.yaml,line=16,col=23,") for line in lines)


def test_junit_is_xml_with_a_failure_for_each_error_and_warning():
    written(BROKEN.replace("# both", "# lastcall-lint: ignore budgetNeverAllows -- <drained> & by hand"))
    (suite,) = ElementTree.fromstring(typed("web.yaml", "-o", "junit").stdout)
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "3", "1")
    assert suite.find("testcase/skipped").get("message") == "<drained> & by hand"
    (empty,) = ElementTree.fromstring(typed(written(GOOD), "-o", "junit").stdout)
    assert (empty.get("tests"), empty.get("failures")) == ("1", "0")


def test_the_output_goes_to_a_file():
    result = typed(written(), "-o", "sarif", "--output-file", "out.sarif")
    assert (result.exit_code, result.stdout) == (3, "")
    assert json.loads(Path("out.sarif").read_text())["version"] == "2.1.0"


# -- suppressions ----------------------------------------------------------------------------------------------------


def open_rules(text: str, *arguments: str) -> list[str]:
    return sorted(each["rule"] for each in found(written(text), *arguments) if each["suppressed"] is None)


ALL = ["budgetNeverAllows", "hookOutlivesGrace", "noReadinessProbe", "targetPortUnresolved"]


def without(*rules: str) -> list[str]:
    return sorted({*ALL} - {*rules})


def test_a_comment_behind_a_field_suppresses_there():
    text = BROKEN.replace("# both", "# lastcall-lint: ignore budgetNeverAllows -- we drain by hand")
    assert open_rules(text) == without("budgetNeverAllows")
    assert "1 suppressed" in typed("web.yaml").stdout


def test_a_comment_on_its_own_line_suppresses_in_all_of_the_next_item():
    comment = "        # lastcall-lint: ignore hookOutlivesGrace, noReadinessProbe -- replaced next week\n"
    assert open_rules(BROKEN.replace("        - name: app", f"{comment}        - name: app")) == without(
        "hookOutlivesGrace", "noReadinessProbe"
    )


def test_a_comment_before_a_document_is_about_all_of_it_and_no_other():
    comment = "# lastcall-lint: ignore hookOutlivesGrace, targetPortUnresolved -- old\n"
    assert open_rules(comment + BROKEN) == sorted([*without("hookOutlivesGrace"), "suppressionUnused"])


def test_a_comment_elsewhere_suppresses_nothing_and_is_told():
    text = BROKEN.replace("# enough, we thought", "# lastcall-lint: ignore budgetNeverAllows -- x")
    assert open_rules(text) == sorted([*ALL, "suppressionUnused"])


@pytest.mark.parametrize(
    "comment",
    ["ignore budgetNeverAllows", "ignore budgetNeverAllows --  ", "ignore nothingLikeThat -- because", "ignore", "off"],
)
def test_a_suppression_without_reason_or_rule_is_none(comment: str):
    assert open_rules(BROKEN.replace("# both", f"# lastcall-lint: {comment}")) == sorted([*ALL, "suppressionInvalid"])


def test_a_text_that_looks_like_a_comment_is_none():
    comment = "# lastcall-lint: off"
    assert open_rules(f"{GOOD}data:\n  a: |\n    {comment}\n  b: '{comment}'\n") == []


def test_an_annotation_suppresses_for_its_object():
    text = BROKEN.replace(
        "kind: PodDisruptionBudget\nmetadata: {name: web}",
        "kind: PodDisruptionBudget\nmetadata: {name: web, annotations: {lint.lastcall/ignore.budgetNeverAllows: WHY}}",
    )
    assert open_rules(text.replace("WHY", "drained by hand")) == without("budgetNeverAllows")
    assert open_rules(text.replace("WHY", '""')) == sorted([*ALL, "suppressionInvalid"])


def test_a_file_suppresses_what_it_names():
    entry = "suppressions:\n  - {rule: budgetNeverAllows, reason: by hand, object: OBJECT}\n"
    written(entry.replace("OBJECT", "PodDisruptionBudget/web"), "accepted.yaml")
    assert open_rules(BROKEN, "--suppressions", "accepted.yaml") == without("budgetNeverAllows")
    written(entry.replace("OBJECT", "PodDisruptionBudget/other"), "accepted.yaml")
    assert open_rules(BROKEN, "--suppressions", "accepted.yaml") == ALL
    written(entry.replace("OBJECT", "PodDisruptionBudget/web"), ".lastcall-lint.yaml")
    assert open_rules(BROKEN) == without("budgetNeverAllows")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("suppressions: [{rule: budgetNeverAllows}]", "give a reason"),
        ("suppressions: [{rule: budgetNeverAllows, reason: '  '}]", "give a reason"),
        ("suppressions: [{rule: nope, reason: x}]", "there is no rule 'nope'"),
        ("suppressions: [{rule: budgetNeverAllows, reason: x, kind: v}]", "'kind' is not a field"),
        ("suppressions: [7]", "must be an object"),
        ("rules: []", "must have a list"),
        ("a: [", "accepted.yaml:2"),
    ],
)
def test_a_file_of_suppressions_that_is_wrong_is_refused(text: str, said: str):
    assert said in said_of(2, written(GOOD), "--suppressions", written(text, "accepted.yaml"))


def test_a_file_of_suppressions_that_is_missing_is_refused():
    assert "No such file" in said_of(2, written(GOOD), "--suppressions", "missing.yaml")


# -- fix -------------------------------------------------------------------------------------------------------------


def test_fix_changes_what_has_one_remedy_and_keeps_everything_else():
    result = typed(written(), "--fix")
    assert Path("web.yaml").read_text() == (
        BROKEN.replace("terminationGracePeriodSeconds: 20", "terminationGracePeriodSeconds: 35")
        .replace("targetPort: htpp", "targetPort: http")
        .replace("  minAvailable: 2   # both\n", "")
        .replace(
            "  selector: {matchLabels: {app: web}}\n", "  selector: {matchLabels: {app: web}}\n  maxUnavailable: 1\n"
        )
        .replace(
            "  selector: {matchLabels: {app: web}}\n  maxUnavailable: 1\n", "  selector: {matchLabels: {app: web}}\n", 1
        )
    )
    assert result.exit_code == 0  # a warning is left
    assert result.stdout.count("fixed:") == 3
    assert open_rules(Path("web.yaml").read_text()) == ["noReadinessProbe"]


def test_fix_leaves_a_file_alone_that_is_in_order():
    before = os.stat(written(GOOD)).st_mtime_ns
    assert typed("web.yaml", "--fix").exit_code == 0
    assert os.stat("web.yaml").st_mtime_ns == before


def test_fix_leaves_what_was_suppressed():
    text = BROKEN.replace("# both", "# lastcall-lint: ignore budgetNeverAllows -- by hand")
    typed(written(text), "--fix")
    assert "minAvailable: 2" in Path("web.yaml").read_text()


def test_fix_renames_a_field_and_an_api_version():
    text = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\nspec:\n  maxUnavailabl: 1 # x\n"
    typed(written(text + "  selector: {matchLabels: {a: b}}\n"), "--fix")
    fixed = Path("web.yaml").read_text()
    assert "apiVersion: policy/v1\n" in fixed
    assert "maxUnavailable: 1" in fixed
    assert "maxUnavailabl:" not in fixed


# -- kustomize -------------------------------------------------------------------------------------------------------


def on_path(monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> None:
    Path("bin").mkdir(exist_ok=True)
    program = Path("bin", name)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{Path('bin').absolute()}:/usr/bin:/bin")


@pytest.mark.loopback
def test_a_kustomization_is_built_by_kubectl(monkeypatch: pytest.MonkeyPatch):
    written(BROKEN)
    on_path(monkeypatch, "kubectl", 'test "$1 $2" = "kustomize overlay" && cat web.yaml')
    assert sorted(each["rule"] for each in found("-k", "overlay")) == ALL
    assert found("-k", "overlay")[0]["file"] == "<kustomize overlay>"


@pytest.mark.loopback
def test_without_kubectl_kustomize_builds_it(monkeypatch: pytest.MonkeyPatch):
    written(BROKEN)
    on_path(monkeypatch, "kustomize", 'test "$1 $2" = "build overlay" && /bin/cat web.yaml')
    monkeypatch.setenv("PATH", str(Path("bin").absolute()))
    assert sorted(each["rule"] for each in found("-k", "overlay")) == ALL


def test_without_either_that_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    assert "neither kubectl nor kustomize is on your PATH" in said_of(1, "-k", "overlay")


@pytest.mark.loopback
def test_what_kustomize_refuses_is_the_user_s_error(monkeypatch: pytest.MonkeyPatch):
    on_path(monkeypatch, "kubectl", "echo 'no kustomization file' >&2; exit 1")
    assert "-k overlay: no kustomization file" in said_of(2, "-k", "overlay")


# -- run and rollout -------------------------------------------------------------------------------------------------


def test_run_and_rollout_tell_certain_errors_before_a_cluster_starts():
    rules = [each.finding.rule for each in certain_errors(load_manifests([written()]))]
    assert rules == ["targetPortUnresolved", "budgetNeverAllows", "hookOutlivesGrace"]


def test_after_certain_errors_run_and_rollout_say_that_they_start_anyway(capsys):
    tell_certain_errors(load_manifests([written()]))
    assert capsys.readouterr().err.splitlines()[-1].startswith("starting anyway")
    tell_certain_errors([])
    assert capsys.readouterr().err == ""


def test_what_a_new_cluster_lacks_is_certain_there():
    text = BROKEN.replace(
        "containers:", "volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]\n      containers:"
    )
    missing = [each for each in certain_errors(load_manifests([written(text)])) if each.finding.rule == "claimMissing"]
    assert [(each.spot.line, each.finding.certainty) for each in missing] == [(11, "certain")]
    assert "claimMissing" not in [each["rule"] for each in found("web.yaml")]


def test_a_pipe_without_a_writer_is_an_error_at_once():
    os.mkfifo("pipe.yaml")
    assert "pipe.yaml: it is a named pipe, not a file" in said_of(2, "pipe.yaml")
    os.mkfifo("suppressions")
    assert "suppressions: it is a named pipe, not a file" in said_of(2, written(), "--suppressions", "suppressions")


HELM = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "web.fullname" . }}
data:
  {{- toYaml .Values.data | nindent 2 }}
"""


def test_a_template_that_nobody_has_rendered_is_called_that():
    result = typed(written(HELM))
    assert result.exit_code == 2
    assert "web.yaml:4:1: error unrendered: This is an unrendered template." in result.stdout
    assert "fix: Render it: helm template RELEASE CHART | lastcall lint -" in result.stdout
    shell = typed(written(GOOD + "immutable: ${IMMUTABLE}\n"))
    assert shell.exit_code == 3
    assert 'immutable is "${IMMUTABLE}": an unrendered template.' in shell.stdout
    assert "fix: Render it: envsubst < FILE | lastcall lint -" in shell.stdout


def test_marks_of_templates_in_texts_that_kubernetes_takes_are_no_finding():
    text = "data: {a: 'echo ${HOME} {{ $labels.pod }}'}\n"
    assert "nothing found" in typed(written(GOOD + text)).stdout


def test_a_mistake_beside_marks_of_templates_that_are_in_order_is_named_itself():
    result = typed(written("a: '{{ $labels.pod }}'\nb:\n\tc: 1\n"))
    assert result.exit_code == 2
    assert "web.yaml:3:1: error unreadable: not readable as YAML: while scanning for the next token" in result.stdout
