"""The pytest plugin: fixtures for a cluster and a namespace, and what a failed test's report says of them.

Loaded by every pytest of a Python that has lastcall, so it imports nothing else before a fixture is used.
docs/python.md is the page for users.
"""

import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lastcall.testing.blocking import Cluster, Namespace

_SHARED = "lastcall_shared_cluster"
"""In the input of a worker of pytest-xdist: the name of the cluster that all workers share, and who it ends with."""
_RUNNING = "LASTCALL_CLUSTER"
"""The variable that `lastcall exec` and the GitHub action set: the name of a cluster that runs."""
_NAMESPACE = pytest.StashKey["Namespace"]()
"""That of a test, also where the test has asked for the fixture by its name."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lastcall", "Kubernetes clusters by lastcall")
    group.addoption(
        "--lastcall-cluster",
        metavar="worker|shared|NAME",
        help="Cluster that tests use: one for each worker of pytest-xdist (worker), one for all workers (shared), or "
        "the NAME of a running one (lastcall up NAME). Default: $LASTCALL_CLUSTER, else lastcall_cluster of the ini "
        "file, else worker.",
    )
    group.addoption(
        "--lastcall-options", metavar="OPTIONS", help='Options of lastcall up for that cluster: "--nodes 2 --egress".'
    )
    parser.addini("lastcall_cluster", "As --lastcall-cluster.", default="worker")
    parser.addini("lastcall_options", "As --lastcall-options.", default="")
    parser.addini(
        "lastcall_namespace_grace",
        "Grace period in seconds for the Pods of a test's namespace when the test is over; empty for their own.",
        default="1",
    )


def _setting(config: pytest.Config, name: str) -> str:
    given: str | None = config.getoption(name)
    return given if given is not None else str(config.getini(name))


def _running(config: pytest.Config) -> str:
    """Return the cluster that the environment names, "" for none, or if an option says more."""
    return os.environ.get(_RUNNING, "") if config.getoption("lastcall_cluster") is None else ""


def _cluster(config: pytest.Config) -> str:
    return _running(config) or _setting(config, "lastcall_cluster")


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [f"lastcall: cluster {name} (${_RUNNING})"] if (name := _running(config)) else []


class _OnController:
    """Use pytest-xdist's hooks: give each worker the cluster that they share, and end it when all are done."""

    def __init__(self, name: str) -> None:
        self._name = name

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[_SHARED] = (self._name, os.getpid())

    def pytest_sessionfinish(self) -> None:
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.testing.shared import stop_shared

        stop_shared(self._name)


def pytest_configure(config: pytest.Config) -> None:
    is_controller = config.pluginmanager.hasplugin("dsession") and not hasattr(config, "workerinput")
    if is_controller and _cluster(config) == "shared":
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.experiment import unused_name

        config.pluginmanager.register(_OnController(unused_name("pytest")), "lastcall-controller")


@pytest.fixture(scope="session")
def lastcall_cluster(request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """Yield a `lastcall.Cluster` whose node is Ready, for the whole run.

    `--lastcall-cluster` says which, else `$LASTCALL_CLUSTER`.
    """
    # late: pytest imports the plugin in every run, with a cluster or without
    import shlex

    from lastcall.testing.blocking import Cluster

    config = request.config
    which, options = _cluster(config), shlex.split(_setting(config, "lastcall_options"))
    shared = getattr(config, "workerinput", {}).get(_SHARED)
    if shared is not None:
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.testing.shared import start_shared

        start_shared(shared[0], shared[1], options)
        which = shared[0]
    elif which not in ("worker", "shared") and config.getoption("lastcall_options"):
        raise pytest.UsageError(f"--lastcall-options is for a cluster that pytest starts, and {which!r} runs already")
    made = Cluster(options=options) if which in ("worker", "shared") else Cluster.attach(which)
    with made as cluster:
        yield cluster


def _namespace_grace(config: pytest.Config) -> int | None:
    """Raises UsageError."""
    given = str(config.getini("lastcall_namespace_grace")).strip()
    if given and not given.isdecimal():
        raise pytest.UsageError(f"lastcall_namespace_grace: {given!r} is not a number of seconds")
    return int(given) if given else None


@pytest.fixture
def lastcall_namespace(request: pytest.FixtureRequest, lastcall_cluster: "Cluster") -> "Iterator[Namespace]":
    """Yield a new namespace of the cluster, removed after the test. When the test fails, its report describes the Pods.

    A namespace that finalizers hold is left, with a warning that names them: the test has passed all the same.
    """
    # late: pytest imports the plugin in every run, with a cluster or without
    import warnings

    from lastcall.errors import StillThere

    grace = _namespace_grace(request.config)
    try:
        with lastcall_cluster.temporary_namespace(grace=grace) as namespace:
            request.node.stash[_NAMESPACE] = namespace
            yield namespace
    except StillThere as error:
        warnings.warn(pytest.PytestWarning(f"left after the test: {error}"), stacklevel=1)


@pytest.fixture(scope="session")
def kubeconfig(lastcall_cluster: "Cluster") -> str:
    """Return the path of the cluster's kubeconfig: for kubectl, helm, and clients that read one."""
    return lastcall_cluster.kubeconfig


@pytest.fixture(scope="session")
def lastcall_kubernetes(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Yield a `kubernetes.client.ApiClient` for the cluster, or skip the test where that package is not installed."""
    kubernetes = pytest.importorskip("kubernetes")  # before a cluster is started
    kubeconfig = request.getfixturevalue("kubeconfig")
    with kubernetes.config.new_client_from_config(config_file=kubeconfig) as client:
        yield client


@pytest.fixture
def lastcall_kr8s(request: pytest.FixtureRequest) -> Any:
    """Return a `kr8s.Api` for the test's namespace, or skip the test where kr8s is not installed."""
    kr8s = pytest.importorskip("kr8s")  # before a cluster is started
    lastcall_namespace: Namespace = request.getfixturevalue("lastcall_namespace")
    return kr8s.api(kubeconfig=lastcall_namespace.kubeconfig, namespace=lastcall_namespace.namespace)


@pytest.fixture
def lastcall_lightkube(request: pytest.FixtureRequest) -> Any:
    """Return a `lightkube.Client` for the test's namespace, or skip the test where lightkube is not installed."""
    lightkube = pytest.importorskip("lightkube")  # before a cluster is started
    lastcall_namespace: Namespace = request.getfixturevalue("lastcall_namespace")
    config = lightkube.KubeConfig.from_file(lastcall_namespace.kubeconfig)
    return lightkube.Client(config=config, namespace=lastcall_namespace.namespace)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fixtures = getattr(item, "funcargs", None) or {}
    if not report.failed or report.when == "teardown":
        return report
    own = item.stash.get(_NAMESPACE, None)
    used = own or fixtures.get("lastcall_cluster")
    if used is not None:
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.testing.reporting import sections

        report.sections += sections(used, str(call.excinfo.value) if call.excinfo else "", alone=own is not None)
    return report
