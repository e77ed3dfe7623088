"""The life of a node that joined somebody's cluster, in this process: as that of a cluster that stays."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lastcall.cli.errors import UserError, WorldError, start_failure
from lastcall.cli.staying.life import Life, Teller, stay
from lastcall.cluster.directory import DEFAULT_NAME, places
from lastcall.cluster.errors import ClusterStartError
from lastcall.cluster.joined.asked import Asked
from lastcall.cluster.joined.files import DIRECTORY
from lastcall.cluster.options import ClusterOptions
from lastcall.cluster.staying import detach

if TYPE_CHECKING:
    from lastcall.cluster.joined.facts import Joined
    from lastcall.cluster.staying.front import Front
    from lastcall.cluster.staying.state import StateDirectory


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """As `UpOptions` where the names are the same; those that a node has no use for are constants."""

    asked: Asked
    name: str = DEFAULT_NAME
    state: str = ""
    kubernetes_version: str = "1.36"
    state_size: str = "50%"
    timeout: float = 300.0
    output: str = "text"
    static_pods: str = ""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    max_pods: int = 110
    seccomp_default: bool = True
    cni_conf_dir: str = ""
    cni_bin_dir: str = ""
    drain: bool = False
    die_with_parent: bool = False
    die_with: int = 0
    nodes: int = 1
    kubeconfig_merge: bool = False
    objects: tuple[Any, ...] = ()
    page: None = None

    @property
    def ends_with_another(self) -> bool:
        return self.die_with_parent or bool(self.die_with)


def default_state(name: str) -> str:
    """The directory of a node's certificates without --state, beside that of clusters. What it is in is made."""
    path = f"{places()[0]}-nodes/{name}"
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    return path


def stay_joined(options: JoinOptions, teller: Teller, report: detach.Report | None = None) -> int:
    """The whole life of the node; the exit status. Raises CommandError."""
    return stay(options, teller, report, JoinedLife)  # type: ignore[arg-type]  # what a Life needs of them is the same


class JoinedLife(Life):
    """It is made known to the cluster first, and then its processes start."""

    _options: JoinOptions  # type: ignore[assignment]

    def _on_interrupt(self, front: "Front", cancel: Callable[[], object]) -> None:
        if self._is_up and self._options.drain:
            self._teller.note(f"draining node {self._options.asked.node_name}; Ctrl-C again ends it at once")
            front.stop_soon()
        else:
            cancel()

    def _with_state(self, state: "StateDirectory | None") -> int:
        assert state is not None
        self._interrupts.check()
        joined, approves = self._enroll(f"{state.durable}/{DIRECTORY}")
        self._interrupts.check()
        # late: 51 ms of `node join --help`
        from lastcall.cluster.joined.running import JoinedFront, start
        from lastcall.cluster.staying.front_log import FrontLog

        asked = self._options
        options = ClusterOptions(
            kubernetes_version=asked.kubernetes_version,
            name=asked.name,
            state_size=asked.state_size,
            state=state.durable,
            restart_roles=True,
            static_pods=asked.static_pods,
            feature_gates=asked.feature_gates,
            max_pods=asked.max_pods,
            seccomp_default=asked.seccomp_default,
            cni_conf_dir=asked.cni_conf_dir,
            cni_bin_dir=asked.cni_bin_dir,
            joined=joined,
        )
        log = FrontLog(self._directory)
        if self._report is not None:
            for fd in (1, 2):
                os.dup2(log.fd, fd)
        try:
            node = start(options)
        except ClusterStartError as error:
            log.close()
            raise start_failure(error) from error
        try:
            administrator = asked.asked.config if approves else None
            detached = self._report is not None
            front = JoinedFront(
                node,
                options,
                self._directory,
                log,
                state.path,
                detached,
                administrator=administrator,
                drains=asked.drain,
            )
            if not detached:
                front.warn = self._teller.note
            return self._run(front)
        finally:
            node.stop()
            log.close()

    def _enroll(self, pki: str) -> "tuple[Joined, bool]":
        """What it has to know, and whether the kubeconfig's user approves its certificates. Raises CommandError."""
        # late: 300 ms of `node join --help`
        from lastcall.cluster.joined.enroll import EnrollError, Enrolling

        os.makedirs(pki, 0o700, exist_ok=True)
        enrolling = Enrolling(self._options.asked, pki)
        self._interrupts.on_first = enrolling.kill
        try:
            for note in enrolling.messages():
                self._teller.note(note)
        except EnrollError as error:
            self._interrupts.check()
            raise WorldError(str(error)) from error
        finally:
            self._interrupts.on_first = None
        assert enrolling.joined is not None
        return enrolling.joined, enrolling.administrator


def with_state(options: JoinOptions) -> JoinOptions:
    """With a state directory that has a name. Raises UserError."""
    try:
        return replace(options, state=os.path.abspath(options.state or default_state(options.name)))
    except OSError as error:
        raise UserError(f"the node's state has no place: {error}; fix: --state DIR") from None
