"""`lastcall apiserver`: the API server as a process of its own, on an etcd that others may use too."""

import ipaddress
import os
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from lastcall.cli.options import etcd_flags, read_pem, read_service_account_key
from lastcall.cli.terminal import say_from
from lastcall.errors import Interrupted, UserError, WorldError
from lastcall.world import crash_guard
from lastcall.world.dataclass import dataclass
from lastcall.world.interrupts import Interrupts
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.store import EtcdOptions


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line asked for, checked. Certificates and keys are PEM."""

    etcd: "EtcdOptions"
    bind_address: str
    port: int
    certificate: bytes
    key: bytes
    client_ca: bytes
    service_account_key: bytes
    issuer: str
    service_range: str
    advertise_address: str


@click.command("apiserver")
@etcd_flags(required=True)
@click.option(
    "--bind-address", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Address on which to listen."
)
@click.option(
    "--secure-port", metavar="PORT", type=click.IntRange(1, 65535), default=6443, show_default=True, help="Its port."
)
@click.option(
    "--advertise-address",
    metavar="ADDRESS",
    default="",
    help="Address at which Pods reach this server: the endpoint of the Service kubernetes.  [default: --bind-address]",
)
@click.option("--tls-cert-file", metavar="FILE", required=True, help="The server's certificate, and its chain (PEM).")
@click.option("--tls-private-key-file", metavar="FILE", required=True, help="Its private key (PEM).")
@click.option(
    "--client-ca-file",
    metavar="FILE",
    required=True,
    help="CA of the client certificates (PEM); a certificate's CN is the user.",
)
@click.option(
    "--service-account-signing-key-file",
    metavar="FILE",
    required=True,
    help="Private key of ServiceAccount tokens (PEM, EC P-256 or RSA): the same for all API servers of an etcd.",
)
@click.option(
    "--service-account-issuer",
    metavar="URL",
    default="https://kubernetes.default.svc.cluster.local",
    show_default=True,
    help="Issuer of ServiceAccount tokens.",
)
@click.option(
    "--service-cluster-ip-range",
    metavar="CIDR",
    default="10.96.0.0/16",
    show_default=True,
    help="Addresses of Services: the same for all API servers of an etcd.",
)
def apiserver(etcd: "EtcdOptions", **flags: Any) -> None:
    """Run an API server on an etcd until Ctrl-C.

    Keys and encoding are those of kube-apiserver, which can serve the same etcd at the same time. If the process is
    killed, the next one continues. Exit status: 0 ended as asked, 2 bad input, 1 anything else.
    """
    raise SystemExit(run_api_server(checked(etcd, flags)))


def checked(etcd: "EtcdOptions", flags: dict[str, Any]) -> Settings:
    """Return the settings that the flags say. Raises UserError, which names flag, value and fix."""
    for flag in ("bind_address", "advertise_address"):
        _check_address(flag, flags[flag])
    try:
        network = ipaddress.IPv4Network(flags["service_cluster_ip_range"])
    except ValueError as error:
        raise UserError(f"--service-cluster-ip-range: {error}; fix: write a range as 10.96.0.0/16") from None
    if network.num_addresses < 8:
        raise UserError(f"--service-cluster-ip-range {network}: is too small; fix: use /29 or larger")
    settings = Settings(
        etcd,
        flags["bind_address"],
        flags["secure_port"],
        read_pem("tls-cert-file", flags["tls_cert_file"]),
        read_pem("tls-private-key-file", flags["tls_private_key_file"]),
        read_pem("client-ca-file", flags["client_ca_file"]),
        read_service_account_key(flags["service_account_signing_key_file"]),
        flags["service_account_issuer"],
        str(network),
        flags["advertise_address"] or flags["bind_address"],
    )
    _check_keys(settings)
    return settings


def _check_address(flag: str, text: str) -> None:
    try:
        if text:
            ipaddress.IPv4Address(text)
    except ValueError as error:
        raise UserError(
            f"--{flag.replace('_', '-')}: {error}; fix: write an IPv4 address, such as 192.0.2.10"
        ) from None


def _check_keys(settings: Settings) -> None:
    # late: only where the server runs
    from lastcall.kube.apiserver import server_context

    try:
        server_context(settings.certificate, settings.key, client_ca=settings.client_ca)
    except (ssl.SSLError, ValueError) as error:
        raise UserError(
            f"--tls-cert-file, --tls-private-key-file, --client-ca-file: {error}; fix: give a certificate, its "
            f"private key, and the certificate of a CA"
        ) from None


def run_api_server(settings: Settings) -> int:
    """Run until a signal; the exit status. Raises LastcallError."""
    # late: only where the server runs
    import uvloop

    with Interrupts(message="the API server has ended") as interrupts, suppress(Interrupted):
        interrupts.run(_run(settings), runner=uvloop.run)
    return 0


async def _run(settings: Settings) -> None:
    # late: 400 ms of `apiserver --help`
    from lastcall.kube.apiserver import APIServer, APIServerConfig, server_context
    from lastcall.kube.store import StoreError, open_etcd
    from lastcall.records.memory import NoRecorder

    crash_guard.install(crash_guard.Faults(say=_note))
    world = World()
    sock = _listen(settings)
    try:
        store = await open_etcd(settings.etcd, world=world)
    except StoreError as error:
        raise WorldError(str(error)) from None
    try:
        network = ipaddress.IPv4Network(settings.service_range)
        server = APIServer(
            world=world,
            store=store,
            recorder=NoRecorder(),
            config=APIServerConfig(
                service_cidr=settings.service_range,
                kubernetes_service_ip=str(network.network_address + 1),
                endpoint=(settings.advertise_address, settings.port),
                service_account_key_pem=settings.service_account_key,
                root_ca_pem=settings.client_ca,
                issuer=settings.issuer,
                components=True,
                hosts=(settings.bind_address, settings.advertise_address, socket.gethostname()),
            ),
        )
        await server.bootstrap()
        context = server_context(settings.certificate, settings.key, client_ca=settings.client_ca)
        _note(f"serves https://{settings.bind_address}:{settings.port} from {', '.join(settings.etcd.servers)}")
        await server.serve([sock], context)
    finally:
        await store.close()


def _listen(settings: Settings) -> socket.socket:
    try:
        return socket.create_server((settings.bind_address, settings.port))
    except OSError as error:
        raise WorldError(
            f"--secure-port {settings.port}: cannot listen on {settings.bind_address}: "
            f"{os.strerror(error.errno or 0)}; fix: use another --secure-port"
        ) from None


def _note(text: object) -> None:
    say_from("lastcall apiserver", str(text))
