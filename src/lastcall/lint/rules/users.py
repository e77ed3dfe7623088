"""Users of containers: whether they may be who they are, and read what is mounted for them."""

from collections.abc import Iterator

from lastcall.kube.api import Object
from lastcall.lint import images
from lastcall.lint.application import Application, Container, Workload
from lastcall.lint.subject import Finding, Op, found
from lastcall.manifests import Path


def findings(app: Application) -> Iterator[Finding]:
    for workload in app.workloads:
        yield from _group(workload)
        yield from _users(workload)
        for container in workload.all_containers:
            yield from _files(workload, container)


def _group(workload: Workload) -> Iterator[Finding]:
    """The sandbox of a Pod has the Pod's own user and group, whatever its containers have."""
    context = workload.pod_spec.get("securityContext") or {}
    if context.get("runAsGroup") is not None and context.get("runAsUser") is None:
        text = (
            f"The Pod has runAsGroup: {context['runAsGroup']} and no runAsUser: containerd refuses its sandbox, so no "
            "container is started."
        )
        yield found("groupWithoutUser", workload.subject, (*workload.spec_path, "securityContext", "runAsGroup"), text)


def _users(workload: Workload) -> Iterator[Finding]:
    pod = workload.pod_spec.get("securityContext") or {}
    for container in workload.all_containers:
        own = container.spec.get("securityContext") or {}
        if not own.get("runAsNonRoot", pod.get("runAsNonRoot")):
            continue
        user = own.get("runAsUser", pod.get("runAsUser"))
        image = str(container.spec.get("image"))
        if user == 0:
            base = (
                (*container.path, "securityContext") if "runAsUser" in own else (*workload.spec_path, "securityContext")
            )
            text = (
                f"{container.name} runs as user 0 (runAsUser), which runAsNonRoot: true forbids: it is never started."
            )
            yield found("rootForbidden", workload.subject, (*base, "runAsUser"), text)
        elif user is None and images.runs_as_root(image):
            text = (
                f"runAsNonRoot: true forbids {container.name} to run as root, images such as {image} do, and there is "
                "no runAsUser: it is never started."
            )
            yield found("imageMayRunAsRoot", workload.subject, container.path, text)


def _files(workload: Workload, container: Container) -> Iterator[Finding]:
    """Files of Secrets and ConfigMaps belong to root; fsGroup makes them its group's, and readable for it."""
    pod = workload.pod_spec.get("securityContext") or {}
    own = container.spec.get("securityContext") or {}
    user, group = (own.get(key, pod.get(key)) for key in ("runAsUser", "runAsGroup"))
    if not user or pod.get("fsGroup") is not None:
        return
    mounted = {each.get("name") for each in container.spec.get("volumeMounts") or ()}
    for index, volume in enumerate(workload.pod_spec.get("volumes") or ()):
        if volume.get("name") not in mounted:
            continue
        for mode, path in _modes(volume):
            if mode & 0o004 or (not group and mode & 0o040):
                continue
            text = (
                f"{container.name} runs as user {user}, and the files of volume {volume['name']} have mode {mode:04o} "
                "and belong to root: it cannot read them."
            )
            security = (*workload.spec_path, "securityContext")
            patch = [Op("add", (*security, "fsGroup"), user)]
            if not workload.subject.has(security):
                patch = [Op("add", security, {"fsGroup": user})]
            where = (*workload.spec_path, "volumes", index, *path)
            yield found("filesUnreadable", workload.subject, where, text, patch=patch)
            break


def _modes(volume: Object) -> Iterator[tuple[int, Path]]:
    for kind in ("secret", "configMap", "projected"):
        source = volume.get(kind)
        if source:
            yield int(source.get("defaultMode", 0o644)), (kind, "defaultMode")
            for index, item in enumerate(source.get("items") or ()):
                if item.get("mode") is not None:
                    yield int(item["mode"]), (kind, "items", index, "mode")
