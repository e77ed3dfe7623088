"""Image pull policy, back-off and Events. Source: images/image_manager.go."""

# check: observes because it substituted the image

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import Object, namespace_of, uid_of
from lastcall.kube.api.text.go_notation import go_duration, go_quote
from lastcall.kube.cri.api import SUBSTITUTE_FOR, Image, ImageService, RuntimeServiceError
from lastcall.kube.cri.docker_config import DockerConfig, DockerConfigError, credentials_for, parse_pull_secret
from lastcall.kube.node.interfaces import EventRecorder, ImagePullError
from lastcall.kube.node.pods.spec import container_field_path
from lastcall.kube.node.runtime.backoff import Backoff
from lastcall.kube.node.runtime.environment import ContainerConfigError
from lastcall.kube.node.status.features import StatusFeatures
from lastcall.records import kinds
from lastcall.records.record import Recorder
from lastcall.world.clock import monotonic
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.volumes import ImageVolumeSource
    from lastcall.records.definitions.kubelet_start import ImageSubstituted

BACKOFF_INITIAL_SECONDS = 10.0
BACKOFF_MAX_SECONDS = 300.0
"""A failed pull is not tried again before 10, 20, 40 … 300 s, forgotten 600 s after the last failure."""

PullSecrets = Callable[[str, str], Awaitable[Object | None]]
"""(namespace, name) → the Secret, None when there is none. Raises ContainerConfigError."""


class PodImageManager:
    """Implements `interfaces.ImageManager`. Pulls of all Pods are serial, as by default in Kubernetes."""

    def __init__(
        self,
        *,
        world: World,
        images: ImageService,
        events: EventRecorder,
        recorder: Recorder,
        features: StatusFeatures,
        pull_secrets: PullSecrets | None = None,
    ) -> None:
        self._world = world
        self._images = images
        self._events = events
        self._recorder = recorder
        self._features = features
        self._pull_secrets = pull_secrets
        self._backoff = Backoff(BACKOFF_INITIAL_SECONDS, BACKOFF_MAX_SECONDS)
        self._errors: dict[str, str] = {}
        self._serial = asyncio.Lock()

    async def ensure_image_exists(self, pod: Pod, container: Container) -> Image:
        """Return the image a container starts from, pulled if needed. Raises ImagePullError with the waiting reason."""
        return await self._ensure(pod, container, container.get("image", ""), container.get("imagePullPolicy") or "")

    async def ensure_volume_image_exists(self, pod: Pod, source: ImageVolumeSource) -> Image:
        """Return the image of a volume; its Events are about the Pod. Raises ImagePullError with the waiting reason.

        Source: kuberuntime_manager.go:getImageVolumes.
        """
        return await self._ensure(pod, {"name": ""}, source.get("reference", ""), source.get("pullPolicy") or "")

    async def _ensure(self, pod: Pod, container: Container, name: str, policy: str) -> Image:
        configs, missing = await self._secrets_of(pod)
        if missing and not self._features.pull_secret_event_after_failure:
            self._tell_missing_secrets(pod, missing)
        policy = policy or default_pull_policy(name)
        try:
            image = await self._images.image_status(name)
        except RuntimeServiceError as error:
            raise self._inspect_failed(pod, container, name, error) from error
        if image is not None and policy != "Always":
            self._present(pod, container, name, image)
            return image
        if image is None and policy == "Never":
            message = f"Container image {go_quote(name)} is not present with pull policy of Never"
            self._event(pod, container, "Warning", "ErrImageNeverPull", message)
            raise self._failed(pod, container, "ErrImageNeverPull", message)
        return await self._pull(pod, container, name, configs, missing)

    async def _secrets_of(self, pod: Pod) -> tuple[list[DockerConfig | DockerConfigError], list[str]]:
        """The Pod's imagePullSecrets, which have those of its ServiceAccount, and the names of those that are missing.

        (kubelet_pods.go:getPullSecretsForPod)
        """
        names = [reference.get("name") or "" for reference in pod["spec"].get("imagePullSecrets") or []]
        if self._pull_secrets is None or not names:
            return [], []
        found: list[DockerConfig | DockerConfigError] = []
        missing = []
        for name in filter(None, names):
            try:
                secret = await self._pull_secrets(namespace_of(pod), name)
            except ContainerConfigError:
                secret = None
            if secret is None:
                missing.append(name)
                continue
            try:
                found.append(parse_pull_secret(secret))
            except DockerConfigError as error:
                found.append(DockerConfigError(f"imagePullSecret {name}: {error}"))
        return found, missing

    def _tell_missing_secrets(self, pod: Pod, missing: list[str]) -> None:
        text = (
            f"Unable to retrieve some image pull secrets ({', '.join(missing)}); "
            "attempting to pull the image may not succeed."
        )
        self._events.event(pod, "Warning", "FailedToRetrieveImagePullSecret", text)

    async def _pull(
        self,
        pod: Pod,
        container: Container,
        name: str,
        secrets: list[DockerConfig | DockerConfigError],
        missing: list[str],
    ) -> Image:
        key = f"{uid_of(pod)}_{name}"
        clock = self._world.clock
        self._backoff.collect_garbage(clock.monotonic_ns())
        if (left_ns := self._backoff.left_ns(key, clock.monotonic_ns())) > 0:
            message = f"Back-off pulling image {go_quote(name)}"
            self._event(pod, container, "Normal", "BackOff", message)
            if cause := self._errors.get(key):
                message = f"{message}: {cause}"
            failure = self._failed(pod, container, "ImagePullBackOff", message)
            failure.expires_ns = clock.wall_ns() + left_ns
            raise failure
        self._event(pod, container, "Normal", "Pulling", f"Pulling image {go_quote(name)}")
        asked = monotonic(clock)
        async with self._serial:
            began = monotonic(clock)
            try:
                reference = await self._pull_with(name, secrets)
            except RuntimeServiceError as error:
                if missing and self._features.pull_secret_event_after_failure:
                    self._tell_missing_secrets(pod, missing)
                raise self._pull_failed(pod, container, name, key, error) from error
        ended = monotonic(clock)
        self._errors.pop(key, None)
        image = await self._images.image_status(name) or Image(id=reference)
        if SUBSTITUTE_FOR in image.annotations:  # it was not pulled, whatever the answer is called
            self._present(pod, container, name, image)
            return image
        message = f"Successfully pulled image {go_quote(name)} in {go_duration(ended - began)}"
        if self._features.image_pull_waiting_text:
            message += f" ({go_duration(ended - asked)} including waiting)"
        if self._features.image_pull_size_text:
            message += f". Image size: {image.size} bytes."
        self._event(pod, container, "Normal", "Pulled", message)
        return image

    async def _pull_with(self, name: str, secrets: list[DockerConfig | DockerConfigError]) -> str:
        """With each of the Pod's credentials for this registry, or else what the runtime itself knows.

        Source: kuberuntime_image.go:PullImage.
        """
        for each in secrets:
            if isinstance(each, DockerConfigError):
                raise RuntimeServiceError(str(each))
        configs = [each for each in secrets if isinstance(each, DockerConfig)]
        errors: list[RuntimeServiceError] = []
        for auth in credentials_for(repository_of(name), configs):
            try:
                return await self._images.pull_image(name, auth)
            except RuntimeServiceError as error:
                errors.append(error)
        if not errors:
            return await self._images.pull_image(name)
        texts = list(dict.fromkeys(str(error) for error in errors))
        text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        raise RuntimeServiceError(text, errors[-1].reason)

    def _present(self, pod: Pod, container: Container, name: str, image: Image) -> None:
        tail = " and can be accessed by the pod" if self._features.image_present_access_text else ""
        message = f"Container image {go_quote(name)} already present on machine{tail}"
        self._event(pod, container, "Normal", "Pulled", message)
        self._note_substitute(pod, container, name, image)

    def _note_substitute(self, pod: Pod, container: Container, name: str, image: Image) -> None:
        """A substitute must not be taken for the image that was asked for."""
        if SUBSTITUTE_FOR not in image.annotations:
            return
        substitute = image.repo_tags[0] if image.repo_tags else image.id
        message = (
            f"Container image {go_quote(name)} is {substitute} on this machine, made from its own files: the "
            "image of the registry is not available"
        )
        self._event(pod, container, "Normal", "ImageSubstituted", message)
        facts: ImageSubstituted = {"image": name, "substitute": substitute}
        self._recorder.record(kinds.IMAGE_SUBSTITUTED, pod_uid=uid_of(pod), container=container["name"], facts=facts)

    def _inspect_failed(self, pod: Pod, container: Container, name: str, error: RuntimeServiceError) -> ImagePullError:
        if error.reason == "InvalidImageName":
            message = f"Failed to apply default image tag {go_quote(name)}: {error}"
            self._event(pod, container, "Warning", "InspectFailed", message)
            return self._failed(pod, container, "InvalidImageName", message)
        message = f"Failed to inspect image {go_quote(name)}: {error}"
        self._event(pod, container, "Warning", "InspectFailed", message)
        return self._failed(pod, container, "ImageInspectError", message)

    def _pull_failed(
        self, pod: Pod, container: Container, name: str, key: str, error: RuntimeServiceError
    ) -> ImagePullError:
        self._event(pod, container, "Warning", "Failed", f"Failed to pull image {go_quote(name)}: {error}")
        now_ns = self._world.clock.monotonic_ns()
        self._backoff.next(key, now_ns, now_ns)
        reason = (
            error.reason if error.reason in ("RegistryUnavailable", "SignatureValidationFailed") else "ErrImagePull"
        )
        self._errors[key] = f"{reason}: {error}"
        return self._failed(pod, container, reason, str(error))

    def _failed(self, pod: Pod, container: Container, reason: str, message: str) -> ImagePullError:
        """The Event that startContainer adds to every image error, and the error."""
        self._event(pod, container, "Warning", "Failed", f"Error: {reason}")
        return ImagePullError(reason, message)

    def _event(self, pod: Pod, container: Container, event_type: str, reason: str, message: str) -> None:
        path = container_field_path(pod, container["name"])
        self._events.event(pod, "Warning" if event_type == "Warning" else "Normal", reason, message, field_path=path)


def repository_of(image: str) -> str:
    """Return `registry/path` of an image name, as the keys of credentials are compared with it."""
    name = image.partition("@")[0]
    first, slash, rest = name.partition("/")
    if not slash or not (any(c in first for c in ".:") or first == "localhost"):
        first, rest = "docker.io", name
    path, colon, tag = rest.rpartition(":")
    return f"{first}/{path if colon and '/' not in tag else rest}"


def default_pull_policy(image: str) -> str:
    """Return Always for the tag `latest` or none, else IfNotPresent. Source: pkg/apis/core/v1/defaults.go."""
    if "@" in image:
        return "IfNotPresent"
    tag = image.rsplit("/", 1)[-1].partition(":")[2] or "latest"
    return "Always" if tag == "latest" else "IfNotPresent"
