"""Lists the faults of the start."""

from random import Random
from typing import Any

from bench.diagnosis.application import DIRECTORY, Application, container_of
from bench.diagnosis.fault import START_SYMPTOMS, Apply, Fault
from bench.diagnosis.faults_stop import behaves

ANY = ("single", "master", "wrapper", "init", "slowStart", "pair", "sidecar", "stateful", "database", "queue", "batch")
PYTHON = ("single", "master", "pair", "sidecar", "stateful", "queue")
LISTENING = ("single", "slowStart", "database")
TIMEOUT = ("--timeout", "15s")
PROBED = ("--timeout", "8s")
MESSAGES = (
    "fatal: cannot connect to database at db:5432: connection refused",
    "Error: environment variable API_TOKEN is not set",
    "panic: config: unknown field 'retires'",
    "OSError: [Errno 98] Address already in use",
    "Migration 0042 is missing: refusing to start",
)


def program_missing(app: Application, name: str, random: Random) -> tuple[str, ...]:
    path = f"/usr/local/bin/{random.choice(('serve', 'launch', 'entrypoint'))}-{app.name}"
    container_of(app.spec, name)["command"] = [path, "--port", "80"]
    return (path,)


def run_directly(app: Application, name: str) -> str:
    """Start the file itself, as an image's entrypoint does."""
    path = f"{DIRECTORY}/{app.programs[name].file}"
    container_of(app.spec, name)["command"] = [path]
    return path


def interpreter_missing(app: Application, name: str, random: Random) -> tuple[str, ...]:
    path = random.choice(("/usr/local/bin/python3.19", "/opt/venv/bin/python", "/opt/conda/bin/python3"))
    app.programs[name].interpreter, app.mode = path, 0o755
    run_directly(app, name)
    return (path,)


def carriage_returns(app: Application, name: str, _: Random) -> tuple[str, ...]:
    app.programs[name].line_end, app.mode = "\r\n", 0o755
    run_directly(app, name)
    return ("line end|carriage return|crlf|\\\\r",)


def not_executable(app: Application, name: str, _: Random) -> tuple[str, ...]:
    run_directly(app, name)
    return ("execut|defaultMode|permission",)


def config_map_missing(app: Application, name: str, random: Random) -> tuple[str, ...]:
    missing = f"{app.name}-{random.choice(('settings', 'flags', 'options'))}"
    source = {"configMapKeyRef": {"name": missing, "key": random.choice(("mode", "region"))}}
    container_of(app.spec, name).setdefault("env", []).append({"name": "MODE", "valueFrom": source})
    return (missing,)


def secret_missing(app: Application, name: str, random: Random) -> tuple[str, ...]:
    missing = f"{app.name}-{random.choice(('credentials', 'tokens', 'db'))}"
    container_of(app.spec, name)["envFrom"] = [{"secretRef": {"name": missing}}]
    return (missing,)


def key_missing(app: Application, name: str, random: Random) -> tuple[str, ...]:
    key, there = random.choice(("timeout", "region", "endpoint")), f"{app.name}-env"
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": there}, "data": {key.upper(): "1"}}
    app.before.append(data)
    source = {"configMapKeyRef": {"name": there, "key": key}}
    container_of(app.spec, name).setdefault("env", []).append({"name": "VALUE", "valueFrom": source})
    return (there, key)


def volume_map_missing(app: Application, name: str, random: Random) -> tuple[str, ...]:
    kind = random.choice(("configMap", "secret"))
    missing = f"{app.name}-{random.choice(('certs', 'rules', 'templates'))}"
    source = {"configMap": {"name": missing}} if kind == "configMap" else {"secret": {"secretName": missing}}
    app.spec.setdefault("volumes", []).append({"name": "more", **source})
    mount = {"name": "more", "mountPath": "/etc/more"}
    container_of(app.spec, name).setdefault("volumeMounts", []).append(mount)
    return (missing,)


def directory_over_file(app: Application, name: str, random: Random) -> tuple[str, ...]:
    """Mount a ConfigMap where the program reads a file, without subPath."""
    file = random.choice(("settings.ini", "app.conf", "config.yaml"))
    path = f"/etc/{app.name}/{file}"
    app.programs[name].reads = path
    source = {"metadata": {"name": f"{app.name}-file"}, "data": {file: "level = 1\n"}}
    app.before.append({"apiVersion": "v1", "kind": "ConfigMap", **source})
    app.spec.setdefault("volumes", []).append({"name": "file", "configMap": {"name": f"{app.name}-file"}})
    container_of(app.spec, name).setdefault("volumeMounts", []).append({"name": "file", "mountPath": path})
    return (path, "subPath")


def post_start(script: str, *words: str) -> Apply:
    def apply(app: Application, name: str, _: Random) -> tuple[str, ...]:
        hook = {"exec": {"command": ["sh", "-c", script]}}
        container_of(app.spec, name).setdefault("lifecycle", {})["postStart"] = hook
        return words

    return apply


def init_container(*scripts: str) -> Apply:
    def apply(app: Application, _: str, random: Random) -> tuple[str, ...]:
        script = random.choice(scripts)
        name = random.choice(("wait-for-db", "migrate-schema", "fetch-assets"))
        container = {"name": name, "image": app.image, "imagePullPolicy": "IfNotPresent"}
        app.spec.setdefault("initContainers", []).append({**container, "command": ["sh", "-c", script]})
        return (name,)

    return apply


def port_mismatch(app: Application, name: str, random: Random) -> tuple[str, ...]:
    """Let the manifest name another port than the one on which the program listens."""
    container, wrong = container_of(app.spec, name), app.programs[name].port + random.choice((1, 10, 80))
    for port in container.get("ports", ()):
        port["containerPort"] = wrong
    for each in ("readinessProbe", "livenessProbe", "startupProbe"):
        for handler in ("httpGet", "tcpSocket"):
            if handler in container.get(each, {}):
                container[each][handler]["port"] = wrong
    container.pop("livenessProbe", None)
    container.pop("startupProbe", None)
    return (str(app.programs[name].port),)


def wrong_path(app: Application, name: str, random: Random) -> tuple[str, ...]:
    """Ask at a path that the program answers with an error."""
    app.programs[name].errors = True
    path = random.choice(("/health", "/-/healthy", "/readyz"))
    container_of(app.spec, name)["readinessProbe"]["httpGet"]["path"] = path
    container_of(app.spec, name).pop("livenessProbe", None)
    return ("probe's path|path of the probe|path of the readinessprobe|httpget.path",)


def startup_too_short(app: Application, name: str, random: Random) -> None:
    app.programs[name].start_seconds = random.choice((5.0, 6.0))
    container = container_of(app.spec, name)
    container["startupProbe"] |= {"periodSeconds": 1, "failureThreshold": 2}
    app.spec["terminationGracePeriodSeconds"] = 2


def liveness_too_strict(app: Application, name: str, random: Random) -> None:
    """Let the program answer slowly for a moment, and the livenessProbe have no patience."""
    program = app.programs[name]
    program.stalls_after, program.stalls_for = 2.0, random.choice((2.0, 3.0))
    asked = {"httpGet": {"path": program.ready_path, "port": program.port}}
    container = container_of(app.spec, name)
    container["livenessProbe"] = {**asked, "periodSeconds": 1, "timeoutSeconds": 1, "failureThreshold": 1}
    container["readinessProbe"] = {**asked, "periodSeconds": 1, "timeoutSeconds": 4, "failureThreshold": 5}
    app.spec["terminationGracePeriodSeconds"] = 3


def image_missing(policy: str) -> Apply:
    def apply(app: Application, name: str, _: Random) -> tuple[str, ...]:
        container = container_of(app.spec, name)
        repository, _, tag = app.image.rpartition(":")
        container["image"], container["imagePullPolicy"] = f"{repository}:{tag}-rc1", policy
        return (container["image"],)

    return apply


def image_name_invalid(app: Application, name: str, random: Random) -> tuple[str, ...]:
    image = random.choice((f"{app.name}:Not A Tag", f"https://{app.image}", f"{app.name}::1"))
    container_of(app.spec, name)["image"] = image
    return (image,)


def forbidden_root(app: Application, name: str, _: Random) -> None:
    container_of(app.spec, name)["securityContext"] = {"runAsNonRoot": True}


def unschedulable(app: Application, name: str, random: Random) -> tuple[str, ...]:
    container, what = container_of(app.spec, name), random.choice(("cpu", "memory", "label", "gpu"))
    if what == "label":
        app.spec["nodeSelector"] = {"disktype": "nvme"}
        return ("nodeSelector|disktype",)
    amount = {"cpu": ("cpu", "900"), "memory": ("memory", "9000Gi"), "gpu": ("nvidia.com/gpu", "1")}[what]
    resources: dict[str, Any] = container.setdefault("resources", {})
    resources.setdefault("requests", {})[amount[0]] = amount[1]
    if what == "gpu":
        resources["limits"] = {amount[0]: amount[1]}
    return (amount[0],)


def claim_missing(app: Application, name: str, random: Random) -> tuple[str, ...]:
    claim = f"{app.name}-{random.choice(('data', 'disk', 'files'))}"
    volume = {"name": "claimed", "persistentVolumeClaim": {"claimName": claim}}
    app.spec.setdefault("volumes", []).append(volume)
    mount = {"name": "claimed", "mountPath": "/var/lib/claimed"}
    container_of(app.spec, name).setdefault("volumeMounts", []).append(mount)
    return (claim,)


def webhook(app: Application, _: str, random: Random) -> tuple[str, ...]:
    """Have the API server ask a webhook about every Pod, and let nobody be behind its Service."""
    name, service = f"{random.choice(('policy', 'inject', 'guard'))}.{app.name}.example.com", f"{app.name}-admission"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    reference = {"service": {"name": service, "namespace": "default", "path": "/validate"}}
    hook = {"name": name, "clientConfig": reference, "rules": [rule], "failurePolicy": "Fail", "timeoutSeconds": 2}
    hook |= {"admissionReviewVersions": ["v1"], "sideEffects": "None"}
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    app.before.append({**head, "metadata": {"name": f"{app.name}-admission"}, "webhooks": [hook]})
    return (f"{name}|{service}",)


def crash(app: Application, name: str, random: Random) -> tuple[str, ...]:
    message = random.choice(MESSAGES)
    app.programs[name].crash = (message, random.choice((1, 2, 78)))
    return (message[:20],)


def ids(*names: str) -> frozenset[str]:
    return frozenset(names)


NOT_STARTED = ids("commandNotStarted")
COMMAND = ids("fixCommand", "fixInterpreter")
CRASHED = ids("crashed", "crashLoop")

START = (
    Fault(
        "programMissing", "start", ANY, program_missing, NOT_STARTED, COMMAND, START_SYMPTOMS, by_words="finding",
        args=TIMEOUT,
    ),
    Fault(
        "interpreterMissing", "start", PYTHON, interpreter_missing, NOT_STARTED, COMMAND, START_SYMPTOMS,
        by_words="finding", args=TIMEOUT, worded=CRASHED,
    ),
    Fault(
        "carriageReturns", "start", PYTHON, carriage_returns, NOT_STARTED, COMMAND, START_SYMPTOMS, by_words="finding",
        args=TIMEOUT, lint=ids("scriptLineEnds"), worded=CRASHED,
    ),
    Fault(
        "notExecutable", "start", PYTHON, not_executable, NOT_STARTED, COMMAND, START_SYMPTOMS, by_words="finding",
        args=TIMEOUT, lint=ids("fileNotExecutable"),
    ),
    Fault("configMapMissing", "start", ANY, config_map_missing, ids("configMissing"), by_words="finding", args=TIMEOUT),
    Fault(
        "secretMissing", "start", ANY, secret_missing, ids("configMissing"), by_words="finding", args=TIMEOUT,
        lint=ids("secretMissing"),
    ),
    Fault(
        "keyMissing", "start", ANY, key_missing, ids("configMissing"), by_words="finding", args=TIMEOUT,
        lint=ids("configKeyMissing"),
    ),
    Fault(
        "volumeSourceMissing", "start", ANY, volume_map_missing, ids("volumeNotMounted", "configMissing"),
        by_words="finding", args=TIMEOUT, lint=ids("secretMissing"),
    ),
    Fault(
        "directoryOverFile", "start", PYTHON, directory_over_file, ids("mountHidesFile"), ids("fixMount"),
        START_SYMPTOMS, by_words="finding", args=TIMEOUT, worded=CRASHED,
    ),
    Fault(
        "postStartFails", "start", ANY, post_start("echo cannot register >&2; exit 1", "command", "poststart hook"),
        ids("restartedPostStart"), ids("fixPostStart"), START_SYMPTOMS, by_words="advice", args=TIMEOUT, shows=False,
    ),
    Fault(
        "postStartHangs", "start", ANY, post_start("sleep 600"), ids("postStartRuns"), ids("fixPostStart"),
        START_SYMPTOMS, args=TIMEOUT,
    ),
    Fault(
        "initFails", "start", ANY, init_container("echo no such table: users; exit 1", "cat /seed/data.sql"),
        ids("initContainerFailed"), ids("fixCrash"), START_SYMPTOMS, by_words="finding", args=TIMEOUT, beside=True,
    ),
    Fault(
        "initNeverEnds", "start", ANY, init_container("until nc -z db 5432; do echo waiting for db; sleep 1; done"),
        ids("initContainerRuns"), ids("fixCommand"), START_SYMPTOMS, by_words="finding", args=TIMEOUT, beside=True,
    ),
    Fault(
        "portMismatch", "start", ("single", "database"), port_mismatch, ids("probeFailed"), ids("fixProbe"),
        frozenset(), by_words="advice", args=PROBED,
    ),
    Fault(
        "readinessPath", "start", ("single",), wrong_path, ids("probeFailed"), ids("fixProbe"), frozenset(),
        by_words="advice", args=PROBED,
    ),
    Fault(
        "startupTooShort", "start", ("slowStart",), startup_too_short, ids("startupProbeKilled"), ids("startFaster"),
        START_SYMPTOMS, args=("--timeout", "12s"),
    ),
    Fault(
        "livenessTooStrict", "start", ("single", "wrapper"), liveness_too_strict, ids("livenessProbeKilled"),
        ids("fixServer", "fixProbe"), frozenset({"crashed", "killed", "probeFailed"}), args=("--after", "5s"),
    ),
    Fault(
        "imageMissing", "start", ANY, image_missing("IfNotPresent"), ids("imageNotPulled"), by_words="finding",
        args=TIMEOUT,
    ),
    Fault(
        "imageNever", "start", ANY, image_missing("Never"), ids("imageNeverPulled"), by_words="finding", args=TIMEOUT,
    ),
    Fault(
        "imageNameInvalid", "start", ANY, image_name_invalid, ids("imageNameInvalid"), by_words="finding", args=TIMEOUT,
    ),
    Fault("runsAsRoot", "start", ANY, forbidden_root, ids("rootForbidden"), args=TIMEOUT),
    Fault("unschedulable", "start", ANY, unschedulable, ids("unschedulable"), by_words="finding", args=TIMEOUT),
    Fault("claimMissing", "start", ANY, claim_missing, ids("claimMissing"), by_words="finding", args=TIMEOUT),
    Fault(
        "webhookDown", "start", ("single", "queue", "stateful"), webhook, ids("webhookRefuses"), by_words="finding",
        args=TIMEOUT,
    ),
    Fault("crash", "start", (*PYTHON, "batch"), crash, CRASHED, ids("fixCrash"), frozenset(), by_words="finding",
          args=TIMEOUT),
    Fault("crashLater", "start", PYTHON[:1], behaves(crash_after=1.5), CRASHED, ids("fixCrash"),
          ids("hookNotRun", "endedByItself"), args=("--after", "3s")),
)  # fmt: skip
