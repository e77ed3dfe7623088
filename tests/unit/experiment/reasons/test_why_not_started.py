"""A container that cannot be started has one reason, the field that caused it, and the value that repairs it."""

from typing import Any

import pytest

from lastcall.experiment.reasons.why_not_ready import why_not_ready

RUNC = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: "
)
VOLUMES = "/var/lib/kubelet/pods/7d/volumes"
SOURCE = f"{VOLUMES}/kubernetes.io~configmap/conf"
SUB_PATH = "/var/lib/kubelet/pods/7d/volume-subpaths/conf/app/0"
VIA = "(via /proc/self/fd/6), flags: 0x5001"


def mounting(target: str, why: str, source: str = SOURCE) -> str:
    return f'error during container init: error mounting "{source}" to rootfs at "{target}": {why}'


def refused(target: str, source: str = SOURCE) -> str:
    return mounting(target, f"mount {source}:{target} {VIA}: not a directory", source)


def volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "conf", **source}]}


def mounted(path: str, **more: Any) -> dict[str, Any]:
    return {"volumeMounts": [{"name": "conf", "mountPath": path, **more}]}


CONFIG_MAP = volume(configMap={"name": "hosts"})
ONE_ITEM = volume(secret={"secretName": "s", "items": [{"key": "conf", "path": "app.conf"}]})
CLAIM = volume(persistentVolumeClaim={"claimName": "data"})
STARTS = [
    ("a program that is in no directory of PATH", 'exec: "serve": executable file not found in $PATH',
     {"command": ["serve", "--port", "80"]}, {},
     "command: no directory of the image's PATH has serve: write its whole path, or use an image that has it"),
    ("a program of args", 'exec: "serve": executable file not found in $PATH', {"args": ["serve"]}, {},
     "args: no directory of the image's PATH has serve"),
    ("a program of the image", 'exec: "serve": executable file not found in $PATH', {}, {},
     "the image's ENTRYPOINT or CMD: no directory of the image's PATH has serve"),
    ("a whole command line as one word", 'exec: "python app.py --port 80": executable file not found in $PATH',
     {"command": ["python app.py --port 80"]}, {},
     'command: [python, app.py, --port, "80"] (each word is an item of its own; "python app.py --port 80" is taken for '
     "the name of one program)"),
    ("a path that is not there", 'exec: "/app/serve": stat /app/serve: no such file or directory',
     {"command": ["/app/serve"]}, {}, "command: /app/serve does not exist in the image or in a volume"),
    ("a file of a ConfigMap that may not be executed", 'exec: "/conf/run.sh": permission denied',
     {"command": ["/conf/run.sh"], **mounted("/conf")}, CONFIG_MAP,
     "volume conf: defaultMode: 0755, which lets /conf/run.sh be executed; or command: [sh, /conf/run.sh]"),
    ("a file of the image that may not be executed", 'exec: "/app/run.sh": permission denied',
     {"command": ["/app/run.sh"]}, {}, "make /app/run.sh executable for the container's user in the image (chmod +x)"),
    ("a directory", 'exec: "/app": is a directory', {"command": ["/app"]}, {},
     "command: /app is a directory: name a program in it"),
    ("a working directory that is a file", "error during container init: mkdir /etc/passwd: not a directory",
     {"workingDir": "/etc/passwd"}, {}, "workingDir: /etc/passwd is not a directory, or is below a file"),
    ("a working directory that is a file, in other words",
     'chdir to cwd ("/etc/passwd") set in config.json failed: not a directory', {}, {},
     "the image's WORKDIR: /etc/passwd is not a directory"),
    ("a working directory that the user may not enter",
     'chdir to cwd ("/root") set in config.json failed: permission denied', {"workingDir": "/root"}, {},
     "workingDir: the container's user may not enter /root"),
    ("a working directory that cannot be made", "error during container init: mkdir /conf/x: read-only file system",
     {"workingDir": "/conf/x"}, {}, "workingDir: /conf/x does not exist, and cannot be made in a volume"),
    ("a ConfigMap over a file", refused("/etc/nsswitch.conf"), mounted("/etc/nsswitch.conf"), CONFIG_MAP,
     "volumeMounts of app: subPath: nsswitch.conf for /etc/nsswitch.conf, which is a file in the image, while volume "
     "conf (a ConfigMap) is a directory"),
    ("a Secret with one item over a file", refused("/etc/hosts.conf"), mounted("/etc/hosts.conf"), ONE_ITEM,
     "volumeMounts of app: subPath: app.conf for /etc/hosts.conf"),
    ("a claim over a file", refused("/etc/db"), mounted("/etc/db"), CLAIM,
     "volumeMounts of app: mountPath: a directory in place of /etc/db, which is a file in the image, while volume conf "
     "(a PersistentVolumeClaim) is a directory"),
    ("a file over a directory, or a key that is missing", refused("/etc/app", SUB_PATH),
     mounted("/etc/app", subPath="app.conf"), CONFIG_MAP,
     "volumeMounts of app: mountPath: /etc/app/app.conf, if /etc/app is a directory in the image"),
    ("a mount below a file", mounting("/etc/passwd/x", "mkdir /run/rootfs/etc/passwd/x: not a directory"),
     mounted("/etc/passwd/x"), CONFIG_MAP,
     "volumeMounts of app: a mountPath that is not below a file: a part of /etc/passwd/x is a file in the image"),
    ("a mount point in a volume that is read-only",
     mounting("/data/conf", "mkdir /run/rootfs/data/conf: read-only file system"),
     {"volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True},
                       {"name": "conf", "mountPath": "/data/conf"}]},
     CONFIG_MAP, "volumeMounts of app: a mountPath outside of /data, which is read-only: /data/conf cannot be made"),
    ("a source that is missing", mounting("/data", "stat /mnt/none: no such file or directory", "/mnt/none"),
     mounted("/data"), volume(hostPath={"path": "/mnt/none"}),
     "volume conf: hostPath.type: DirectoryOrCreate, or a path that exists on the node: /mnt/none does not"),
    ("a user that does not exist", "unable to find user ghost: no matching entries in passwd file", {}, {},
     "securityContext.runAsUser: a number: the image's USER ghost is not in its /etc/passwd"),
    ("a group that does not exist", "unable to find group ghost: no matching entries in group file", {}, {},
     "securityContext.runAsGroup: a number: the group ghost of the image's USER is not in its /etc/group"),
]  # fmt: skip


def lines_of(message: str, container: dict[str, Any], spec: dict[str, Any]) -> list[str]:
    whole = f"{RUNC}{message}: unknown"
    waits = {"waiting": {"reason": "RunContainerError", "message": whole}}
    last = {"terminated": {"exitCode": 128, "reason": "StartError", "message": whole}}
    pod = {
        "metadata": {"name": "web-1", "namespace": "default"},
        "spec": {"containers": [{"name": "app", **container}], **spec},
        "status": {"containerStatuses": [{"name": "app", "state": waits, "lastState": last, "restartCount": 2}]},
    }
    event = {"type": "Warning", "reason": "Failed", "message": f"Error: {whole}", "count": 3}
    return why_not_ready(pod, [event])


@pytest.mark.parametrize(
    ("message", "container", "spec", "fix"), [row[1:] for row in STARTS], ids=[r[0] for r in STARTS]
)
def test_the_field_that_caused_it_and_the_value_that_repairs_it_are_named_once(
    message: str, container: dict[str, Any], spec: dict[str, Any], fix: str
) -> None:
    lines = lines_of(message, container, spec)
    (told,) = [line for line in lines if line.startswith("  fix: ")]
    assert told.startswith(f"  fix: {fix}"), told
    assert sum(message in line for line in lines) == 1


def test_a_container_that_never_ran_is_not_said_to_crash() -> None:
    waits = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}}
    message = f'{RUNC}exec: "serve": executable file not found in $PATH: unknown'
    last = {"terminated": {"exitCode": 128, "reason": "StartError", "message": message}}
    pod = {
        "metadata": {"name": "web-1", "namespace": "default"},
        "spec": {"containers": [{"name": "app", "command": ["serve"]}]},
        "status": {"containerStatuses": [{"name": "app", "state": waits, "lastState": last, "restartCount": 2}]},
    }
    (told,) = [line for line in why_not_ready(pod) if "fix:" in line]
    assert told.startswith("  fix: command: no directory of the image's PATH has serve")


def test_the_words_of_other_versions_of_runc_are_known_too() -> None:
    newer = (
        "mount src=/x/conf, dst=/etc/hosts.conf, dstFd=/proc/thread-self/fd/11, flags=MS_BIND|MS_REC: not a directory"
    )
    (told,) = [each for each in lines_of(mounting("/etc/hosts.conf", newer), mounted("/etc/hosts.conf"), CONFIG_MAP)
               if "fix:" in each]  # fmt: skip
    assert "subPath: hosts.conf" in told


def test_a_user_that_containerd_does_not_find_is_named_by_the_image() -> None:
    message = "failed to create containerd container: mount callback failed on /tmp/x: no users found"
    status = {
        "containerStatuses": [
            {"name": "app", "state": {"waiting": {"reason": "CreateContainerError", "message": message}}}
        ]
    }
    pod = {
        "metadata": {"name": "web-1", "namespace": "default"},
        "spec": {"containers": [{"name": "app"}]},
        "status": status,
    }
    assert (
        "  fix: securityContext.runAsUser: a number: the image's USER is not in its /etc/passwd [userMissing]"
        in why_not_ready(pod)
    )


def test_an_image_without_a_command_is_given_one() -> None:
    message = "failed to generate container spec: no command specified"
    status = {
        "containerStatuses": [
            {"name": "app", "state": {"waiting": {"reason": "CreateContainerError", "message": message}}}
        ]
    }
    pod = {
        "metadata": {"name": "web-1", "namespace": "default"},
        "spec": {"containers": [{"name": "app"}]},
        "status": status,
    }
    assert (
        "  fix: command: the image has neither ENTRYPOINT nor CMD: name its program [commandNotStarted]"
        in why_not_ready(pod)
    )


@pytest.mark.parametrize("reason", ["RunContainerError", "StartError", "CreateContainerError"])
def test_of_a_start_that_fails_in_unknown_words_nothing_is_advised(reason: str) -> None:
    status = {"containerStatuses": [{"name": "app", "state": {"waiting": {"reason": reason, "message": "odd"}}}]}
    pod = {
        "metadata": {"name": "web-1", "namespace": "default"},
        "spec": {"containers": [{"name": "app"}]},
        "status": status,
    }
    assert not any("fix:" in line for line in why_not_ready(pod))
