"""Where things stand: rules in pure modules, folders that one can look over, packages without circles.

Read from the source itself, as in `test_architecture.py`.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
ROOT = PROJECT / "src" / "lastcall"
FILES = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
MODULES = {("lastcall/" + name).removesuffix(".py").removesuffix("/__init__").replace("/", "."): name for name in FILES}

MOST_ENTRIES = 27
"""Modules, packages and data files of one folder; about 25 is what one looks over."""

MADE_BY_RUNS = {"__pycache__", ".hypothesis"}

MORE_ENTRIES = {
    "src/lastcall/cli": 34,  # a module or a folder for each command
    "tests/scenarios/data": 89,  # recordings of a real cluster, a file each; tests find them by their names
    "tests/support": 60,  # one directory on sys.path for all tests
}
"""Folders that may have more, and how many."""

TABLES = (
    "agent/cgroup_tree.py",
    "agent/memory.py",
    "agent/requests.py",
    "api/claims.py",
    "api/custom/kinds.py",
    "api/custom/structural.py",
    "api/defaults/kinds.py",
    "api/defaults/workloads.py",
    "api/features/disabled_fields.py",
    "api/features/gates.py",
    "api/patch/apply.py",
    "api/pods/references.py",
    "api/pods/restart_rules.py",
    "api/pods/spec.py",
    "api/quantity.py",
    "api/quota/counting.py",
    "api/quota/scopes.py",
    "api/scheduling.py",
    "api/selectors.py",
    "api/validation.py",
    "apiserver/admission/classes.py",
    "apiserver/admission/limits.py",
    "apiserver/admission/pod_security/baseline.py",
    "apiserver/admission/pod_security/checks.py",
    "apiserver/admission/pod_security/restricted.py",
    "apiserver/admission/priority.py",
    "apiserver/admission/storage.py",
    "apiserver/admission/tolerations.py",
    "apiserver/proxying/webhooks/matching.py",
    "apiserver/proxying/webhooks/review.py",
    "apiserver/auth/node_rules.py",
    "apiserver/auth/rbac.py",
    "apiserver/deletion.py",
    "apiserver/fieldmanager/compare.py",
    "apiserver/fieldmanager/fields.py",
    "apiserver/fieldmanager/manager.py",
    "apiserver/fieldmanager/merge.py",
    "apiserver/requestinfo.py",
    "cli/exit_status.py",
    "cli/image/text.py",
    "cli/linting/comments.py",
    "cli/manifests/not_simulated.py",
    "cli/manifests/workloads.py",
    "cli/rollout/experiments/cleaning.py",
    "cli/rollout/experiments/differing.py",
    "cli/rollout/experiments/entrance.py",
    "cli/rollout/experiments/ledger.py",
    "cli/rollout/experiments/plan.py",
    "cli/rollout/experiments/rights.py",
    "cli/rollout/workload.py",
    "cli/waiting/causes.py",
    "cli/waiting/not_well.py",
    "cli/waiting/why_not_ready.py",
    "client/access/certificates.py",
    "client/access/config.py",
    "client/access/exec_credential.py",
    "client/access/merging.py",
    "client/access/proxies.py",
    "client/access/rights.py",
    "client/access/selecting.py",
    "cluster/egress/outside.py",
    "cluster/health/faults.py",
    "cluster/health/restarts.py",
    "cluster/layout.py",
    "cluster/propagation.py",
    "cluster/published/port.py",
    "controllers/cronjob/schedule.py",
    "controllers/deployment/revisions.py",
    "controllers/deployment/rolling.py",
    "controllers/deployment/scaling.py",
    "controllers/deployment/status.py",
    "controllers/garbagecollector/graph.py",
    "controllers/job/backoff.py",
    "controllers/job/indexes.py",
    "controllers/job/pods.py",
    "controllers/job/tracking.py",
    "controllers/namespace/conditions.py",
    "controllers/nodes/health.py",
    "controllers/nodes/taints.py",
    "controllers/nodes/zones.py",
    "controllers/podautoscaler/replicas.py",
    "controllers/podautoscaler/scaling.py",
    "controllers/quota/status.py",
    "controllers/replicaset/ranking.py",
    "controllers/replicaset/status.py",
    "controllers/statefulset/claims.py",
    "cri/docker_config.py",
    "cri/sandbox/address_pool.py",
    "cri/sandbox/cni/rules.py",
    "cri/sandbox/cni/versions.py",
    "cri/sandbox/images/reference.py",
    "cri/sandbox/images/registry_auth.py",
    "cri/sandbox/runtime_status.py",
    "exporting/addresses.py",
    "exporting/samples.py",
    "exporting/spans.py",
    "exporting/warnings.py",
    "exporting/workload.py",
    "lint/commands.py",
    "lint/mounted.py",
    "lint/names.py",
    "lint/patching.py",
    "lint/suppressing.py",
    "node/admission/critical_pods.py",
    "node/pods/cgroups.py",
    "node/pods/resources.py",
    "node/pods/restart_all.py",
    "node/pods/spec.py",
    "node/runtime/container_config.py",
    "node/status/conditions.py",
    "node/status/containers.py",
    "node/status/phase.py",
    "node/stopping/grace.py",
    "node/versions.py",
    "node/workers/transitions.py",
    "proxy/dns_records.py",
    "proxy/policies/policy.py",
    "proxy/policies/table.py",
    "proxy/rules.py",
    "proxy/table.py",
    "nftables/state.py",
    "proxy/topology.py",
    "proxy/view.py",
    "scheduler/filters.py",
    "scheduler/placement.py",
    "scheduler/pod_affinity.py",
    "scheduler/preemption.py",
    "scheduler/ranking.py",
    "scheduler/scores.py",
    "scheduler/terms.py",
    "scheduler/topology_spread.py",
    "scheduler/volume_binding.py",
    "timeline/catalogue/lookup.py",
    "timeline/causes/decided.py",
    "timeline/causes/twice.py",
    "timeline/ending.py",
    "timeline/explain.py",
    "timeline/facts/budget.py",
    "timeline/facts/containers.py",
    "timeline/facts/finalizers.py",
    "timeline/facts/never_started.py",
    "timeline/facts/pid1.py",
    "timeline/findings/around.py",
    "timeline/findings/children.py",
    "timeline/findings/restarts.py",
    "timeline/findings/rules.py",
    "timeline/findings/why.py",
    "timeline/kinds.py",
    "timeline/node_facts.py",
    "timeline/picture/axis.py",
    "timeline/picture/lanes.py",
    "timeline/render/bars.py",
    "timeline/render/lines.py",
    "timeline/said.py",
    "timeline/shell_script.py",
    "timeline/text.py",
    "timeline/verdict.py",
    "timeline/versions.py",
    "timeline/wording/apiserver.py",
    "timeline/wording/kubelet.py",
    "timeline/wording/parts.py",
    "timeline/wording/recorded.py",
    "timeline/wording/runtime.py",
    "tracing/book.py",
    "tracing/clocks.py",
    "tracing/decisions.py",
    "tracing/drafts.py",
    "tracing/endpoints.py",
    "tracing/events.py",
    "tracing/ledger.py",
    "tracing/owners.py",
    "tracing/pods.py",
    "tracing/scope.py",
    "tracing/stamps.py",
    "tracing/stops.py",
    "tracing/tale.py",
    "tracing/unknown.py",
    "tracing/node_agent/job.py",
    "tracing/node_agent/translate.py",
    "traffic/account.py",
    "traffic/advice.py",
    "traffic/advice_check.py",
    "traffic/bounds.py",
    "traffic/container_runs.py",
    "traffic/control.py",
    "traffic/find_safe.py",
    "traffic/hooks.py",
    "traffic/kind_ends.py",
    "traffic/latency.py",
    "traffic/lives.py",
    "traffic/outcome.py",
    "traffic/patches.py",
    "traffic/thresholds.py",
    "ui/board.py",
    "ui/cells.py",
    "ui/entrance.py",
    "ui/predict.py",
    "ui/rollout/texts.py",
    "ui/story.py",
    "ui/tour/claims.py",
    "ui/tour/experiments.py",
)
"""Pure modules with a name of their own; those called `decide.py` are found by it."""

PURE = sorted({*TABLES, *(name for name in FILES if name.rpartition("/")[2] == "decide.py")})

NO_RULE_USES = (
    "aiohttp",
    "asyncio",
    "lastcall.client",
    "lastcall.store",
    "lastcall.world",
    "os",
    "random",
    "select",
    "socket",
    "subprocess",
    "threading",
    "time",
)
BUT = {
    "lastcall.client.access.config",  # data
    "lastcall.client.access.errors",  # a class
    "lastcall.client.access.merging",  # as pure
    "lastcall.world.clock.rfc3339",  # writes a time that it is given
    "lastcall.world.clock.parse_rfc3339",
    "lastcall.world.delays",  # a delay as data
    "lastcall.world.walls.REQUEST",  # a word
    "os.path",  # computes with names of files
    "random.Random",  # the type of what is given
}

STUTTERS = {"node/node_status.py"}  # the status of a Node

CIRCLES: set[frozenset[str]] = set()
"""Entries of one folder that import each other when they are loaded. Only to be shortened."""


def imports(tree: ast.Module) -> Iterator[str]:
    """Full names of everything a module imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def impure(tree: ast.Module) -> set[str]:
    """What a rule must not have: coroutines, and names from where time, tasks, clients and the kernel are."""
    waits = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    found = {type(node).__name__ for node in ast.walk(tree) if isinstance(node, waits)}
    found |= {name for name in imports(tree) if _is_in(name, NO_RULE_USES) and not _is_in(name, BUT)}
    return found


def _is_in(name: str, modules: tuple[str, ...] | set[str]) -> bool:
    return any(name == module or name.startswith(module + ".") for module in modules)


def loaded(tree: ast.Module) -> Iterator[str]:
    """The modules of lastcall that loading a module loads: not those in functions or for type checkers."""
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                yield from (each for each in (module if module in MODULES else node.module,) if each in MODULES)
        todo += ast.iter_child_nodes(node)


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The groups of two and more nodes of which each leads to all others."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen, todo = set[str](), [start]
        while todo:
            for each in graph.get(todo.pop(), ()):
                if each not in seen:
                    seen.add(each)
                    todo.append(each)
        reached[start] = seen
    groups = {frozenset(b for b in reached[a] if a in reached.get(b, ())) for a in graph if a in reached[a]}
    return {group for group in groups if len(group) > 1}


def between_entries(modules: dict[str, set[str]]) -> set[frozenset[str]]:
    """Circles between the entries (modules and packages) of each folder, for modules and what each of them loads."""
    found: set[frozenset[str]] = set()
    for folder in {module.rpartition(".")[0] for module in modules} - {""}:
        graph: dict[str, set[str]] = {}
        for module, others in modules.items():
            if module.startswith(folder + "."):
                entry = _entry(module, folder)
                inside = {_entry(other, folder) for other in others if other.startswith(folder + ".")}
                graph.setdefault(entry, set()).update(inside - {entry})
        found |= circles(graph)
    return found


def _entry(module: str, folder: str) -> str:
    return f"{folder}.{module[len(folder) + 1 :].split('.')[0]}"


@pytest.mark.parametrize("name", PURE)
def test_a_rule_waits_for_nothing_and_asks_nobody(name: str) -> None:
    assert not impure(FILES[name])


def test_tables_are_named_once() -> None:
    assert len(set(TABLES)) == len(TABLES)
    assert [name for name in TABLES if name.endswith("/decide.py") or name not in FILES] == []


def test_no_folder_is_too_full_to_look_over() -> None:
    folders = [folder for top in (ROOT, PROJECT / "tests") for folder in (top, *top.rglob("*/")) if folder.is_dir()]
    sizes = {
        folder.relative_to(PROJECT).as_posix(): sum(each.name not in MADE_BY_RUNS for each in folder.iterdir())
        for folder in folders
        if MADE_BY_RUNS.isdisjoint(folder.parts)
    }
    assert {name: size for name, size in sizes.items() if size > MORE_ENTRIES.get(name, MOST_ENTRIES)} == {}
    assert [name for name in MORE_ENTRIES if sizes.get(name, 0) <= MOST_ENTRIES] == [], "no exception is needed"


def test_a_package_says_what_it_holds() -> None:
    assert [name for name, tree in FILES.items() if name.endswith("__init__.py") and not ast.get_docstring(tree)] == []


def test_no_module_repeats_its_package_s_name() -> None:
    stuttering = [
        name
        for name in FILES
        if name.count("/") and name.split("/")[-1].removesuffix(".py").startswith(name.split("/")[-2] + "_")
    ]
    assert set(stuttering) == STUTTERS


def test_packages_have_no_circles_but_those_listed() -> None:
    assert between_entries({module: set(loaded(FILES[name])) for module, name in MODULES.items()}) == CIRCLES


def test_the_paths_in_architecture_are_true() -> None:
    top = PROJECT
    pages = [top / "ARCHITECTURE.md", *sorted((top / "docs").glob("architecture/*.md"))]
    pages += sorted((top / "docs").glob("contributing/*.md"))
    files = {"/" + path.relative_to(top).as_posix() for each in ("src", "tests", "bench", "tools")
             for path in (top / each).rglob("*.py")}  # fmt: skip
    folders = {f"/{path.relative_to(top).as_posix()}/" for each in ("src", "tests", "bench", "tools", "docs")
               for path in (top / each).rglob("*") if path.is_dir()} | {"/durable/"}  # fmt: skip
    wrong, found = [], 0
    for page in pages:
        for path in sorted(set(re.findall(r"`((?:[\w.-]+/)*[\w-]+(?:\.py|/))(?::\w+(?:\.\w+)?)?`", page.read_text()))):
            found += 1
            if not any(each.endswith("/" + path) for each in (files if path.endswith(".py") else folders)):
                wrong.append(f"{page.name}: {path}")
    assert wrong == []
    assert found > 200, "the pattern no longer finds them"


def test_the_links_between_documents_lead_somewhere() -> None:
    top = PROJECT
    pages = [*top.glob("*.md"), *(top / "docs").rglob("*.md")]
    links = [(page, link.split("#")[0]) for page in pages for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text())
             if not link.startswith(("http", "#"))]  # fmt: skip
    assert [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()] == []
    assert len(links) > 20, "the pattern no longer finds them"


WORKERS = "node/workers/"
STATE_TYPE = "PodSyncStatus"


def writers_of_state(tree: ast.AST, place: str = "") -> set[str]:
    """The functions in which a `state` is given to a status, or could be: as an argument of `replace` or of the status
    itself, by arguments that are not spelled out, by assignment, or past the dataclass."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        inside = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else place
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2]
            keywords = {keyword.arg for keyword in node.keywords}
            positional = called == STATE_TYPE and (
                len(node.args) > 2 or any(isinstance(each, ast.Starred) for each in node.args)
            )
            gives = called in ("replace", STATE_TYPE, "__replace__") and (keywords & {"state", None} or positional)
            if gives or called in ("setattr", "__setattr__"):
                found.add(inside)
        elif isinstance(node, ast.Attribute) and node.attr == "state" and isinstance(node.ctx, ast.Store):
            found.add(inside)
        found |= writers_of_state(node, inside)
    return found


def test_only_move_sets_the_state_of_a_pod_s_worker() -> None:
    """The type of the status is made and changed in the workers' package only, and its state there by `move` only."""
    users = {name for name, tree in FILES.items() if any(each.endswith(f".{STATE_TYPE}") for each in imports(tree))}
    assert all(name.startswith(WORKERS) for name in users)
    writers = {(name, each) for name in FILES if name.startswith(WORKERS) for each in writers_of_state(FILES[name])}
    assert writers == {(f"{WORKERS}transitions.py", "move")}


@pytest.mark.parametrize(
    "text",
    [
        "replace(status, state=State.SYNC)",
        "dataclasses.replace(status, **changes)",
        "PodSyncStatus('u', 'n', state=State.SYNC)",
        "PodSyncStatus('u', 'n', State.SYNC)",
        "t.PodSyncStatus(*known)",
        "object.__setattr__(status, 'state', State.SYNC)",
        "status.state = State.SYNC",
    ],
)
def test_a_state_that_is_set_elsewhere_is_seen(text: str) -> None:
    assert writers_of_state(ast.parse(f"def f(status):\n    {text}\n")) == {"f"}


def test_admission_reads_only_what_can_be_noted() -> None:
    """What is made of a Pod is remembered with what its admission read (`admission/reader.py`): nothing may be read by
    another way. Quotas are charged for each Pod, remembered or not."""
    for name, tree in FILES.items():
        if not name.startswith("apiserver/admission/") or name == "apiserver/admission/quota.py":
            continue
        ways = [each for each in loaded(tree) if _is_in(each, ("lastcall.store", "lastcall.apiserver.registry"))]
        assert ways == [], name
        functions = [each for each in ast.walk(tree) if isinstance(each, ast.AsyncFunctionDef | ast.FunctionDef)]
        attributes = [
            (each.name, node) for each in functions for node in ast.walk(each) if isinstance(node, ast.Attribute)
        ]
        past = {place for place, node in attributes if node.attr == "kinds" and isinstance(node.ctx, ast.Load)}
        assert past <= {"charge"}, name


SINGLE_KINDS = frozenset(
    target.id
    for node in FILES["api/resources.py"].body
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    for target in node.targets
    if isinstance(target, ast.Name) and target.id.isupper()
)
PLURALS = frozenset(
    argument.value
    for node in FILES["api/resources.py"].body
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    for argument in node.value.args[2:3]
    if isinstance(argument, ast.Constant)
)

KINDS_OF_THEIR_OWN = {
    "apiserver/admission/chain.py": "what a resize of a Pod gets from LimitRanges",
    "apiserver/admission/hooks.py": "webhooks see a Namespace's name as the namespace of the request",
    "apiserver/admission/limits.py": "LimitRanges have limits for Pods and for claims",
    "apiserver/admission/node_restriction.py": "the rules of what a node may write, kind by kind",
    "apiserver/admission/pod_security/decide.py": "is about Pods, and about what makes Pods",
    "apiserver/admission/quota.py": "counts what a Pod asks for otherwise than other objects",
    "apiserver/auth/escalation.py": "is about roles and bindings",
    "apiserver/auth/node_graph.py": "what belongs to a node, kind by kind",
    "apiserver/auth/reviews.py": "is about reviews",
    "apiserver/discovery.py": "Bindings have a verb only, and Namespaces are found in two places",
    "apiserver/every_cluster/flow_control.py": "is about FlowSchemas and PriorityLevelConfigurations",
    "apiserver/http.py": "a Namespace's own path has a namespace in it",
    "apiserver/openapi/paths.py": "the parameters of the proxies of Pods and Services",
    "apiserver/records.py": "only Pods and their owners have a story",
    "apiserver/registry/repeated_pods.py": "is about Pods",
    "apiserver/requestinfo.py": "a Namespace's own path has a namespace in it",
    "apiserver/subresources/actions.py": "a token is bound to a Pod, a Secret or a Node",
    "apiserver/subresources/metrics.py": "is about Pods and Nodes",
    "apiserver/subresources/metrics_server.py": "is about Pods and Nodes",
}
"""Modules of the API server that ask for a single kind, and why. What one kind does otherwise on the way of each
request is in its strategy (`apiserver/strategies/`), in its face, or in a table by kind."""


def asks_for_a_kind(tree: ast.Module) -> list[str]:
    """Comparisons with a kind (`resource is PODS`, `resource in (PODS, NODES)`), or with its plural or its word."""
    words = PLURALS | {"Pod", "Namespace", "Node", "Service", "Secret", "Event", "Job"}

    def single(node: ast.expr) -> bool:
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return any(single(each) for each in node.elts)
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str) and node.value in words
        return ast.unparse(node).rpartition(".")[2] in SINGLE_KINDS

    def of_resource(node: ast.expr) -> bool:
        """Not the kind of something that an object names."""
        return ast.unparse(node).split(".")[0] in ("resource", "info", "roles", "rest", "rest[0]", "kind", "self")

    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and of_resource(node.left) and any(single(each) for each in node.comparators)
    ]


def test_what_one_kind_does_otherwise_is_not_asked_for_on_the_way_of_every_request() -> None:
    asking = {
        name for name, tree in FILES.items()
        if name.startswith("apiserver/") and not name.startswith("apiserver/strategies/") and asks_for_a_kind(tree)
    }  # fmt: skip
    assert asking == set(KINDS_OF_THEIR_OWN)


def test_a_question_for_a_kind_is_seen() -> None:
    assert {"PODS", "NAMESPACES", "EVENTS_V1", "JOBS"} <= SINGLE_KINDS and {"pods", "namespaces"} <= PLURALS
    for text in (
        "resource is PODS",
        "resource != kinds.JOBS",
        "resource in (PODS, NODES)",
        "resource.plural == 'pods'",
    ):
        assert asks_for_a_kind(ast.parse(f"if {text} and x:\n    pass\n")), text
    assert not asks_for_a_kind(ast.parse("resource in REVIEWS or TABLE.get(resource) is None or kind == 'struct'"))


def test_the_checks_see_what_they_are_for() -> None:
    bad = ast.parse("from lastcall.world.clock import now\nasync def f():\n    import time\n    await g()\n")
    assert impure(bad) == {"AsyncFunctionDef", "Await", "lastcall.world.clock.now", "time"}
    assert not impure(ast.parse("from lastcall.world.clock import rfc3339\nfrom lastcall.api.meta import Object\n"))
    lazy = "if TYPE_CHECKING:\n    from lastcall.api import meta\ndef f():\n    from lastcall.api import names\n"
    assert set(loaded(ast.parse(lazy + "try:\n    from lastcall.api.field import Problem\nfinally:\n    pass\n"))) == {
        "lastcall.api.field"
    }
    graph = {"p.a.x": {"p.b.x"}, "p.b.y": {"p.a.y"}, "p.c": {"p.a.x"}}
    assert between_entries(graph) == {frozenset({"p.a", "p.b"})}
