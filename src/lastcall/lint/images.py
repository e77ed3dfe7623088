"""What is known of well-known images by their names: no shell in them, their user, whether they end by themselves.

An image of another tag or of a mirror may differ: whatever is said by these tables depends on the application.
"""

_WITHOUT_SHELL = (
    "gcr.io/distroless/",
    "registry.k8s.io/pause",
    "registry.k8s.io/kube-",
    "registry.k8s.io/coredns",
    "registry.k8s.io/metrics-server",
    "cgr.dev/chainguard/static",
    "coredns/coredns",
    "hashicorp/http-echo",
    "traefik/whoami",
    "hello-world",
    "scratch",
)
"""Images without a shell, and so without `sleep`."""

COMMON = (
    "sh", "bash", "dash", "ash", "sleep", "curl", "wget", "kill", "killall", "pkill", "pgrep", "ps", "cat", "test",
    "ls", "echo", "true", "touch", "grep", "nc",
)  # fmt: skip
"""Programs of other images, which one without a shell does not have either."""

_ROOT = frozenset((
    "nginx", "httpd", "busybox", "alpine", "debian", "ubuntu", "python", "node", "ruby", "golang", "php", "openjdk",
    "eclipse-temurin", "amazoncorretto", "redis", "postgres", "mysql", "mariadb", "mongo", "rabbitmq", "traefik",
    "wordpress", "caddy", "tomcat", "perl", "rust", "gcc", "fedora", "centos", "rockylinux",
))  # fmt: skip
"""Docker's official images whose USER is root (some change it in their entrypoint, which the kubelet cannot know)."""

_PROXIES = (
    "istio/proxyv2", "linkerd2-proxy", "linkerd-io/proxy", "linkerd/proxy", "envoyproxy/envoy", "cloud-sql-proxy",
    "cloudsql-docker/gce-proxy", "fluent-bit", "fluentd", "filebeat", "timberio/vector", "promtail",
    "opentelemetry-collector", "opentelemetry-collector-contrib", "consul-dataplane", "oauth2-proxy", "datadog/agent",
)  # fmt: skip
"""Proxies and collectors, which run until they are stopped."""

_SERVERS = ("nginx", "redis", "memcached", "postgres", "mysql", "mariadb", "rabbitmq", "httpd")
"""Servers, when they are not given another command."""


def _name(image: str) -> str:
    """Without tag and digest, and without Docker's own registry."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    name = f"{head}{slash}{last.partition(':')[0]}"
    for prefix in ("docker.io/library/", "docker.io/", "index.docker.io/library/", "library/"):
        name = name.removeprefix(prefix)
    return name


def has_no_shell(image: str) -> bool:
    """Return whether the image has no shell. Distroless images with `debug` in their tag have busybox."""
    tag = image.rpartition("/")[2].partition(":")[2]
    name = _name(image)
    return "debug" not in tag and "-dev" not in tag and name.startswith(_WITHOUT_SHELL)


_CURL_AND_WGET = ("curl", "wget")
_ALPINE_LACKS = ("curl", "bash")


def lacks(image: str, program: str) -> bool:
    """Return whether images of such a name come without that program (by its base name)."""
    if has_no_shell(image):
        return program in COMMON
    name, tag = _name(image), image.rpartition("/")[2].partition(":")[2]
    if name in ("busybox", "alpine"):
        return program in _ALPINE_LACKS
    if name in ("debian", "ubuntu"):
        return program in _CURL_AND_WGET
    if name in ("python", "node"):
        return program in _CURL_AND_WGET if "slim" in tag else "alpine" in tag and program in _ALPINE_LACKS
    return False


def has_busybox(image: str) -> bool:
    """Return whether its sh is busybox's."""
    return "alpine" in image.partition("@")[0] or _name(image) == "busybox"


def runs_as_root(image: str) -> bool:
    """Return whether it runs as root by its own USER, where the manifest says no other one."""
    return _name(image) in _ROOT


def runs_for_ever(image: str, *, own_command: bool) -> bool:
    """Return whether it runs forever beside a Job's own container. `own_command`: the manifest says what it runs."""
    name = _name(image)
    known = _PROXIES if own_command else (*_PROXIES, *_SERVERS)
    return any(name == each or name.endswith(f"/{each}") for each in known)
