"""A real control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler 1.36.2) on a machine of a `Lan`.

    with Lan("name", 2) as lan, RealCluster(folder, lan.machines[0]) as cluster:
        cluster("get", "nodes")                   # kubectl, as the administrator
        cluster.token("abcdef.0123456789abcdef")  # a bootstrap token, with kubeadm's rights for clients that show it

There is no node until somebody joins.
"""

import base64
import hashlib
import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from waiting import eventually

from engines.api_server import BINARIES, missing
from engines.lan import Machine, missing_lan
from lastcall.apiserver.auth.pki import ClusterCA
from lastcall.client.kubeconfig import render_kubeconfig

PODS, SERVICES, API_SERVICE = "10.124.0.0/16", "10.125.0.0/16", "10.125.0.1"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
_RIGHTS = (
    ("kubeadm:kubelet-bootstrap", "system:node-bootstrapper"),
    ("kubeadm:node-autoapprove-bootstrap", "system:certificates.k8s.io:certificatesigningrequests:nodeclient"),
)


def missing_cluster() -> str:
    """Why there can be none here, "" when it can."""
    if absent := missing(*PROGRAMS):
        return f"not in {BINARIES}: {', '.join(absent)}"
    return missing_lan()


class RealCluster:
    def __init__(self, folder: Path, machine: Machine, *, signing: str = "8760h") -> None:
        """`signing` is how long the certificates are good that are signed for nodes."""
        self.folder, self.machine, self.ca = folder, machine, ClusterCA.create("kubernetes")
        self.url = f"https://{machine.address}:6443"
        self.kubeconfig = str(folder / "admin.kubeconfig")
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._files()
        local = "http://127.0.0.1"
        file = str(folder)
        self._commands = {
            "etcd": [
                f"--data-dir={file}/etcd", "--unsafe-no-fsync", "--log-level=error",
                f"--listen-client-urls={local}:2379", f"--advertise-client-urls={local}:2379",
                f"--listen-peer-urls={local}:2380", f"--initial-advertise-peer-urls={local}:2380",
                f"--initial-cluster=default={local}:2380",
            ],
            "kube-apiserver": [
                f"--etcd-servers={local}:2379", f"--advertise-address={machine.address}", "--secure-port=6443",
                f"--service-cluster-ip-range={SERVICES}", "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
                "--enable-bootstrap-token-auth=true", f"--client-ca-file={file}/ca.crt",
                f"--tls-cert-file={file}/server.crt", f"--tls-private-key-file={file}/server.key",
                f"--kubelet-client-certificate={file}/kubelets.crt", f"--kubelet-client-key={file}/kubelets.key",
                f"--kubelet-certificate-authority={file}/ca.crt",
                "--kubelet-preferred-address-types=InternalIP,Hostname", f"--cert-dir={file}/certs",
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                f"--service-account-key-file={file}/sa.pub", f"--service-account-signing-key-file={file}/sa.key",
            ],
            "kube-controller-manager": [
                *self._as("system:kube-controller-manager"), f"--cluster-signing-cert-file={file}/ca.crt",
                f"--cluster-signing-key-file={file}/ca.key", f"--cluster-signing-duration={signing}",
                f"--root-ca-file={file}/ca.crt", f"--service-account-private-key-file={file}/sa.key",
                "--use-service-account-credentials=true", "--controllers=*,bootstrapsigner,tokencleaner",
                "--allocate-node-cidrs=true", f"--cluster-cidr={PODS}", f"--service-cluster-ip-range={SERVICES}",
                f"--cert-dir={file}/certs-manager", "--leader-elect=false",
            ],
            "kube-scheduler": [
                *self._as("system:kube-scheduler"), f"--cert-dir={file}/certs-scheduler", "--leader-elect=false",
            ],
        }  # fmt: skip

    def __enter__(self) -> Self:
        try:
            for program in ("etcd", "kube-apiserver"):
                self.start(program)
            eventually(lambda: self.run("get", "--raw", "/readyz").returncode == 0, "kube-apiserver is ready")
            for program in ("kube-controller-manager", "kube-scheduler"):
                self.start(program)
            account = ("get", "serviceaccount", "default")
            eventually(lambda: self.run(*account).returncode == 0, "the controllers run")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for program in reversed(list(self._running)):
            self.kill(program)

    def start(self, program: str) -> None:
        with (self.folder / f"{program}.log").open("ab") as log:
            self._running[program] = subprocess.Popen(
                [*self.machine.inside, str(BINARIES / program), *self._commands[program]],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip

    def kill(self, program: str) -> None:
        process = self._running.pop(program)
        process.kill()
        process.wait()

    def command(self, program: str) -> list[str]:
        """Its flags, for the next start."""
        return self._commands[program]

    def log(self, program: str) -> str:
        return (self.folder / f"{program}.log").read_text(errors="replace")

    def run(self, *arguments: str, stdin: str = "", kubeconfig: str = "") -> "subprocess.CompletedProcess[str]":
        """kubectl."""
        base = [*self.machine.inside, str(BINARIES / "kubectl"), "--kubeconfig", kubeconfig or self.kubeconfig]
        return subprocess.run(
            [*base, "--cache-dir", str(self.folder / "cache"), *arguments],
            input=stdin, capture_output=True, text=True, timeout=150, check=False,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
        )  # fmt: skip

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def apply(self, *objects: dict[str, Any]) -> None:
        self("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def object(self, *arguments: str) -> dict[str, Any]:
        """What `kubectl get` shows."""
        found: dict[str, Any] = json.loads(self("get", *arguments, "-o", "json"))
        return found

    def user(self, name: str, *groups: str) -> str:
        """The path of a kubeconfig for a user with a client certificate."""
        return str(self._kubeconfig(name, *groups))

    def token(self, token: str) -> None:
        """Good for an hour; whoever shows it may ask for a node's certificate, which is given at once."""
        identity, _, secret = token.partition(".")
        until = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        data = {
            "token-id": identity, "token-secret": secret, "expiration": until, "usage-bootstrap-signing": "true",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
        }  # fmt: skip
        group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group"}
        bindings = [
            {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{**group, "name": "system:bootstrappers:kubeadm:default-node-token"}],
            }
            for name, role in _RIGHTS
        ]  # fmt: skip
        info = yaml_of(self.url, self.ca.certificate_pem)
        reading = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cluster-info"], "verbs": ["get"]}
        public = {"name": "cluster-info", "namespace": "kube-public"}
        self.apply(
            {
                "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token", "stringData": data,
                "metadata": {"name": f"bootstrap-token-{identity}", "namespace": "kube-system"},
            },
            *bindings,
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": public, "data": {"kubeconfig": info}},
            {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": public, "rules": [reading],
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": public,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "cluster-info"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:anonymous"}],
            },
        )  # fmt: skip
        key = f"{{.data.jws-kubeconfig-{identity}}}"
        where = ("get", "configmap", "cluster-info", "-n", "kube-public", "-o", f"jsonpath={key}")
        eventually(lambda: self(*where) != "", "cluster-info is signed")

    @property
    def ca_hash(self) -> str:
        """As `kubeadm token create --print-join-command` prints it."""
        public = x509.load_pem_x509_certificate(self.ca.certificate_pem).public_key()
        return (
            "sha256:" + hashlib.sha256(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
        )

    def _as(self, user: str) -> list[str]:
        path = self.user(user)
        return [f"--kubeconfig={path}", f"--authentication-kubeconfig={path}", f"--authorization-kubeconfig={path}",
                "--bind-address=127.0.0.1"]  # fmt: skip

    def _files(self) -> None:
        private = self.ca.new_key_pem()
        key: Any = load_pem_private_key(private, None)
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        names = [self.machine.address, "127.0.0.1", API_SERVICE, "kubernetes.default.svc"]
        kubelets = self.ca.issue_client("kube-apiserver-kubelet-client", ["system:masters"])
        files = {"ca.crt": self.ca.certificate_pem, "ca.key": self.ca.key_pem, "sa.key": private, "sa.pub": public}
        for name, (certificate, own) in (("server", self.ca.issue_server(names)), ("kubelets", kubelets)):
            files |= {f"{name}.crt": certificate, f"{name}.key": own}
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
            (self.folder / name).chmod(0o600)
        self._kubeconfig("admin", "system:masters")

    def _kubeconfig(self, user: str, *groups: str) -> Path:
        certificate, key = self.ca.issue_client(user, list(groups))
        path = self.folder / f"{user.replace(':', '-')}.kubeconfig"
        text = render_kubeconfig("real", self.url, self.ca.certificate_pem, cert_pem=certificate, key_pem=key)
        path.write_text(text)
        path.chmod(0o600)
        return path


def yaml_of(server: str, ca: bytes) -> str:
    """The kubeconfig in cluster-info, as kubeadm writes it."""
    authority = base64.b64encode(ca).decode()
    return (
        "apiVersion: v1\nclusters:\n- cluster:\n"
        f"    certificate-authority-data: {authority}\n    server: {server}\n  name: \"\"\n"
        "contexts: null\ncurrent-context: \"\"\nkind: Config\npreferences: {}\nusers: null\n"
    )  # fmt: skip
