"""One context of the merged files, checked: which cluster, which user, and what both say. Pure.

What kubectl refuses is refused. Where kubectl asks for a name and a password (a user without credentials), the user is
anonymous here.

Source: client-go tools/clientcmd/client_config.go:ClientConfig, validation.go:validateAuthInfo, validateClusterInfo.
"""

# check: pure

import base64
import binascii
from collections.abc import Callable, Mapping
from os.path import dirname, join, sep
from typing import Any, cast

from lastcall.kube.client.access.config import ClientConfig, ExecPlugin, InteractiveMode, Overrides
from lastcall.kube.client.access.errors import KubeconfigError
from lastcall.kube.client.access.impersonation import Impersonation
from lastcall.kube.client.access.merging import Entry, Merged
from lastcall.kube.client.access.values import header_problem, host_problem, server_problem, without_user

Read = Callable[[str], bytes]
"""The content of a file. Raises OSError."""

MOST_BYTES = 1 << 20
"""Of a token or a certificate."""

EXTENSION = "client.authentication.k8s.io/exec"
_MODES = ("Never", "IfAvailable", "Always")
API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_HELP = "https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins"
_REMOVED = {
    "gcp": 'The gcp auth plugin has been removed: use the credential plugin "gke-gcloud-auth-plugin" in place of it, '
    "see https://cloud.google.com/blog/products/containers-kubernetes/kubectl-auth-changes-in-gke",
    "azure": "The azure auth plugin has been removed: use the credential plugin https://github.com/Azure/kubelogin in "
    f"place of it, see {_HELP}",
    "oidc": "auth-provider oidc is not supported: use a credential plugin (exec) in place of it, for example "
    f"https://github.com/int128/kubelogin, see {_HELP}",
}
"""(client-go plugin/pkg/client/auth/gcp and azure). kubectl still has oidc, which renews tokens in the file itself."""


def select(files: Merged, overrides: Overrides, read: Read) -> ClientConfig:
    """Choose the context and make its configuration. Raises KubeconfigError."""
    name = overrides.context or files.current_context
    first = files.files[0]
    if not name:
        raise KubeconfigError(
            f"{first}: current-context is not set: name a context (--context); there are: {_names(files.contexts)}"
        )
    context = _of(files.contexts, first, "context", name)
    cluster = _of(files.clusters, context.place, "cluster", context.text("cluster"))
    named = context.text("user")
    user = _of(files.users, context.place, "user", named) if named else Entry("", context.file, context.place, {})
    ca, ca_file = _pem(cluster, "certificate-authority", read)
    insecure = cluster.flag("insecure-skip-tls-verify")
    if overrides.insecure_skip_tls_verify:
        ca, ca_file, insecure = b"", "", True
    if ca and insecure:
        raise cluster.wrong("insecure-skip-tls-verify", "and certificate-authority are both given: remove one of them")
    cert, cert_file = _pem(user, "client-certificate", read)
    key, key_file = _pem(user, "client-key", read)
    if problem := host_problem(cluster.text("tls-server-name")):
        raise cluster.wrong("tls-server-name", f"{cluster.text('tls-server-name')!a} {problem}")
    if cert and not key:
        raise KubeconfigError(f"{user.place} needs both client-certificate and client-key, or none")
    if not cert:
        key, key_file = b"", ""  # as kubectl: a key alone says nothing
    return ClientConfig(
        server=_server(cluster, secure=bool(ca or cert or insecure)),
        namespace=overrides.namespace or context.text("namespace"),
        ca_pem=ca,
        ca_file=ca_file,
        cert_pem=cert,
        cert_file=cert_file,
        key_pem=key,
        key_file=key_file,
        tls_server_name=cluster.text("tls-server-name"),
        insecure_skip_tls_verify=insecure,
        context=name,
        cluster=cluster.name,
        user=user.name,
        proxy_url=cluster.text("proxy-url"),
        disable_compression=cluster.flag("disable-compression"),
        impersonate=impersonation(_impersonation(user), overrides.impersonate, user.place),
        **_user(user, cluster, read),
    )


def impersonation(said: Impersonation, asked: Impersonation, place: str) -> Impersonation:
    """Return what the file says, with what options say in place of it. Raises KubeconfigError."""
    result = Impersonation(
        asked.user or said.user, asked.groups or said.groups, asked.uid or said.uid, asked.extra or said.extra
    )
    if not result.user and (result.groups or result.uid or result.extra):
        raise KubeconfigError(
            f"{place}: requesting uid, groups or user-extra without impersonating a user: give as (--as), too"
        )
    for words in (result.user, result.uid, *result.groups, *(value for _, value in result.extra)):
        if problem := header_problem(words):
            raise KubeconfigError(f"{place}: the user to act as (as, --as) {words!a} {problem}")
    return result


def _of(entries: Mapping[str, Entry], place: str, what: str, name: str) -> Entry:
    if name in entries:
        return entries[name]
    raise KubeconfigError(f"{place}: {what} {name!r} does not exist; there are: {_names(entries)}")


def _names(entries: Mapping[str, Entry]) -> str:
    return ", ".join(entries) or "none"


def _server(cluster: Entry, secure: bool) -> str:
    server = cluster.text("server")
    if server and "://" not in server:
        server = f"{'https' if secure else 'http'}://{server}"  # (rest/url_utils.go:DefaultServerURL)
    if problem := server_problem(server):
        shown = without_user(cluster.text("server"))
        raise cluster.wrong("server", f"is {shown!a}: must be a URL, https://host:port; {problem}")
    return server


def _user(user: Entry, cluster: Entry, read: Read) -> dict[str, Any]:
    """The fields of ClientConfig that prove the user."""
    token, token_file = user.text("token"), _path(user, user.text("tokenFile"))
    username, password = user.text("username"), user.text("password")
    if token and (username or password):
        raise KubeconfigError(
            f"{user.place}: more than one authentication method found: token and username; only one is allowed"
        )
    if token_file and not token:
        token = _read(user, "tokenFile", token_file, read).decode("utf-8", "replace").strip()
    if problem := header_problem(token):
        raise user.wrong("tokenFile" if token_file else "token", f"{problem}: log in again, or write it as one line")
    provider = user.mapping("auth-provider")
    plugin = user.mapping("exec")
    if provider.fields:
        if plugin.fields:
            raise KubeconfigError(f"{user.place}: auth-provider and exec are both given: remove one of them")
        name = provider.text("name")
        why = _REMOVED.get(name, f"no Auth Provider found for name {name!r}: use exec, a token or a client certificate")
        raise KubeconfigError(f"{provider.place}: {why}")
    return {
        "token": token,
        "token_file": token_file,
        "username": username,
        "password": password,
        "plugin": _plugin(plugin, cluster) if plugin.fields else None,
    }


def _plugin(entry: Entry, cluster: Entry) -> ExecPlugin:
    version = entry.text("apiVersion")
    for key in ("command", "apiVersion"):
        if not entry.text(key):
            raise entry.wrong(key, "must be specified to use an exec authentication plugin")
    if version not in API_VERSIONS:
        raise entry.wrong("apiVersion", f"is {version!r}: must be {' or '.join(API_VERSIONS)}")
    mode = entry.text("interactiveMode") or ("" if version == API_VERSIONS[0] else "IfAvailable")
    if mode not in _MODES:
        raise entry.wrong("interactiveMode", f"is {mode!r}: must be one of {', '.join(_MODES)}")
    env = [(each.text("name"), each.text("value")) for each in entry.items("env")]
    if any(not name or "=" in name or "\0" in name + value for name, value in env):
        raise entry.wrong("env", "has a variable without a name, or with a name that has = or a NUL in it")
    extensions = {each.text("name"): each.fields.get("extension") for each in cluster.items("extensions")}
    command = entry.text("command")
    return ExecPlugin(
        command=_path(entry, command) if sep in command else command,
        args=entry.texts("args"),
        env=tuple(env),
        api_version=version,
        interactive_mode=cast(InteractiveMode, mode),
        install_hint=entry.text("installHint"),
        provide_cluster_info=entry.flag("provideClusterInfo"),
        config=extensions.get(EXTENSION),
    )


def _impersonation(user: Entry) -> Impersonation:
    extra = user.mapping("as-user-extra")
    pairs = [(key, value) for key in extra.fields for value in extra.texts(key)]
    return Impersonation(user.text("as"), user.texts("as-groups"), user.text("as-uid"), tuple(pairs))


def _pem(entry: Entry, field: str, read: Read) -> tuple[bytes, str]:
    """(content, the file that it came from): `<field>-data` is base64, `<field>` a path."""
    data, file = entry.text(f"{field}-data"), entry.text(field)
    if data and file:
        raise entry.wrong(field, f"and {field}-data are both given: remove one of them")
    if data:
        try:
            # Line breaks may be anywhere (encoding/base64).
            return base64.b64decode(data.replace("\n", "").replace("\r", ""), validate=True), ""
        except (binascii.Error, ValueError) as error:
            raise KubeconfigError(
                f"{entry.place}.{field}-data is not base64: {error}; write the output of base64 -w0 FILE, or name the "
                f"file in {field}"
            ) from error
    if not file:
        return b"", ""
    path = _path(entry, file)
    return _read(entry, field, path, read), path


def _path(entry: Entry, name: str) -> str:
    """Relative to the file that says it."""
    return join(dirname(entry.file), name) if name else ""


def _read(entry: Entry, field: str, path: str, read: Read) -> bytes:
    try:
        return read(path)
    except OSError as error:
        raise KubeconfigError(f"{entry.place}.{field} {path!r} cannot be read: {error.strerror or error}") from error
