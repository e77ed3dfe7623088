"""node-semantics 15 in virtual time."""

import base64
import json
from typing import Any

import pytest

from lastcall.kube.cri.api import SUBSTITUTE_FOR, AuthConfig, Image, RuntimeServiceError
from lastcall.kube.node.image_manager import PodImageManager, default_pull_policy, repository_of
from lastcall.kube.node.interfaces import ImagePullError
from lastcall.kube.node.runtime.environment import ContainerConfigError
from lastcall.kube.node.status.features import status_features
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

PRESENT = 'Container image "i:1" already present on machine'


waits_left: list[float] = []
"""Of the last `ensure`: seconds until the next pull is allowed, 0 for an error that is no back-off."""


class Images:
    def __init__(self, world: World, present: bool, error: RuntimeServiceError | None) -> None:
        self.world = world
        self.present = present
        self.error = error
        self.pulls: list[float] = []
        self.image = Image("sha256:1", ("i:1",), size=686825)

    async def image_status(self, image: str) -> Image | None:
        if self.error is not None and self.error.reason == "InvalidImageName":
            raise self.error
        return self.image if self.present else None

    async def pull_image(self, image: str) -> str:
        self.pulls.append(self.world.clock.monotonic_ns() / 1e9)
        await self.world.clock.sleep(6.017)
        if self.error is not None:
            raise self.error
        self.present = True
        return "sha256:1"


class Sink:
    def __init__(self, about: str = "spec.containers{app}") -> None:
        self.about = about
        self.events: list[tuple[str, str, str]] = []
        self.records: list[str] = []

    def event(self, obj: Any, event_type: str, reason: str, message: str, *, field_path: str = "") -> None:
        assert field_path == self.about
        self.events.append((event_type, reason, message))

    def record(self, kind: str, **more: Any) -> str:
        self.records.append(kind)
        return ""


def ensure(
    policy: str,
    present: bool,
    error: RuntimeServiceError | None = None,
    version: str = "1.36",
    waits: tuple[float, ...] = (0.0,),
) -> tuple[list[tuple[str, str, str]], list[tuple[str, str]], list[float]]:
    """(events, errors as (reason, message), times of pulls) of one call after each wait."""

    async def main(world: World) -> Any:
        images, sink = Images(world, present, error), Sink()
        manager = PodImageManager(
            world=world,
            images=images,
            events=sink,
            recorder=sink,
            features=status_features(version),  # type: ignore[arg-type]
        )
        container = {"name": "app", "image": "i:1", "imagePullPolicy": policy}
        pod = {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [container]}}
        errors: list[tuple[str, str]] = []
        waits_left.clear()
        for wait in waits:
            await world.clock.sleep(wait)
            try:
                assert (await manager.ensure_image_exists(pod, container)).id == "sha256:1"
            except ImagePullError as caught:
                errors.append((caught.reason, str(caught)))
                waits_left.append(((caught.expires_ns or 0) - world.clock.wall_ns()) / 1e9 if caught.expires_ns else 0)
        return sink.events, errors, images.pulls

    result: Any = run_virtual(main)
    return result


@pytest.mark.rule("node-semantics 15/present")
@pytest.mark.parametrize(
    ("version", "text"), [("1.36", PRESENT + " and can be accessed by the pod"), ("1.27", PRESENT)]
)
def test_a_present_image_is_not_pulled(version: str, text: str) -> None:
    for policy in ("IfNotPresent", "Never"):
        assert ensure(policy, True, version=version) == ([("Normal", "Pulled", text)], [], [])


@pytest.mark.rule("node-semantics 9.3/image-volumes")
def test_the_image_of_a_volume_is_pulled_by_its_own_policy_and_told_of_the_pod() -> None:
    async def main(world: World) -> Any:
        images, sink = Images(world, False, None), Sink(about="")
        manager = PodImageManager(
            world=world,
            images=images,
            events=sink,
            recorder=sink,
            features=status_features("1.36"),  # type: ignore[arg-type]
        )
        pod = {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [{"name": "app", "image": "a:1"}]}}
        text = ""
        try:
            await manager.ensure_volume_image_exists(pod, {"reference": "i:1", "pullPolicy": "Never"})
        except ImagePullError as error:
            text = f"{error.reason}: {error}"
        image = await manager.ensure_volume_image_exists(pod, {"reference": "i:1"})
        return text, image.id, len(images.pulls), [reason for _, reason, _ in sink.events]

    never = 'ErrImageNeverPull: Container image "i:1" is not present with pull policy of Never'
    found: Any = run_virtual(main)
    assert found == (never, "sha256:1", 1, ["ErrImageNeverPull", "Failed", "Pulling", "Pulled"])


@pytest.mark.rule("node-semantics 15/policy")
def test_never_and_absent() -> None:
    text = 'Container image "i:1" is not present with pull policy of Never'
    events, errors, pulls = ensure("Never", False)
    assert events == [("Warning", "ErrImageNeverPull", text), ("Warning", "Failed", "Error: ErrImageNeverPull")]
    assert (errors, pulls) == ([("ErrImageNeverPull", text)], [])


@pytest.mark.rule("node-semantics 15/pulled")
@pytest.mark.parametrize(
    ("version", "tail"),
    [
        ("1.36", " (6.017s including waiting). Image size: 686825 bytes."),
        ("1.27", " (6.017s including waiting)"),
        ("1.23", ""),
    ],
)
def test_a_pull_that_works(version: str, tail: str) -> None:
    for policy, present in (("Always", True), ("IfNotPresent", False)):
        events, errors, pulls = ensure(policy, present, version=version)
        assert events == [
            ("Normal", "Pulling", 'Pulling image "i:1"'),
            ("Normal", "Pulled", f'Successfully pulled image "i:1" in 6.017s{tail}'),
        ]
        assert (errors, len(pulls)) == ([], 1)


@pytest.mark.rule("node-semantics 15/failed, 15/back-off")
def test_a_failing_pull_backs_off_10_then_20_seconds() -> None:
    events, errors, pulls = ensure("Always", False, RuntimeServiceError("no route"), waits=(0, 1, 9.5, 15, 6))
    assert [round(p, 3) for p in pulls] == [0, 16.517, 43.534]
    assert events[:6] == [
        ("Normal", "Pulling", 'Pulling image "i:1"'),
        ("Warning", "Failed", 'Failed to pull image "i:1": no route'),
        ("Warning", "Failed", "Error: ErrImagePull"),
        ("Normal", "BackOff", 'Back-off pulling image "i:1"'),
        ("Warning", "Failed", "Error: ImagePullBackOff"),
        ("Normal", "Pulling", 'Pulling image "i:1"'),
    ]
    assert [reason for reason, _ in errors] == [
        "ErrImagePull", "ImagePullBackOff", "ErrImagePull", "ImagePullBackOff", "ErrImagePull",
    ]  # fmt: skip
    assert waits_left == pytest.approx([0, 9, 0, 5, 0], abs=0.01)
    assert errors[1][1] == 'Back-off pulling image "i:1": ErrImagePull: no route'


@pytest.mark.rule("node-semantics 15/invalid")
def test_an_invalid_name_is_found_before_any_pull() -> None:
    events, errors, pulls = ensure("Always", False, RuntimeServiceError("invalid reference format", "InvalidImageName"))
    text = 'Failed to apply default image tag "i:1": invalid reference format'
    assert events == [("Warning", "InspectFailed", text), ("Warning", "Failed", "Error: InvalidImageName")]
    assert (errors, pulls) == ([("InvalidImageName", text)], [])


def test_a_substitute_is_named() -> None:
    async def main(world: World) -> Sink:
        images, sink = Images(world, True, None), Sink()
        images.image = Image("sha256:1", ("host/busybox:1",), annotations={SUBSTITUTE_FOR: "i:1"})
        manager = PodImageManager(
            world=world,
            images=images,
            events=sink,
            recorder=sink,
            features=status_features("1.36"),  # type: ignore[arg-type]
        )
        container = {"name": "app", "image": "i:1", "imagePullPolicy": "IfNotPresent"}
        await manager.ensure_image_exists({"metadata": {"uid": "u"}, "spec": {"containers": [container]}}, container)
        return sink

    sink = run_virtual(main)
    assert sink.events[1][:2] == ("Normal", "ImageSubstituted")
    assert "is host/busybox:1 on this machine" in sink.events[1][2]
    assert sink.records == ["ImageSubstituted"]


def test_a_substitute_is_never_said_to_have_been_pulled() -> None:
    async def main(world: World) -> Sink:
        images, sink = Images(world, True, None), Sink()
        images.image = Image("sha256:1", ("host/busybox:1",), annotations={SUBSTITUTE_FOR: "i:1"})
        manager = PodImageManager(
            world=world,
            images=images,
            events=sink,
            recorder=sink,
            features=status_features("1.36"),  # type: ignore[arg-type]
        )
        container = {"name": "app", "image": "i:1", "imagePullPolicy": "Always"}
        await manager.ensure_image_exists({"metadata": {"uid": "u"}, "spec": {"containers": [container]}}, container)
        return sink

    sink = run_virtual(main)
    assert [event[1] for event in sink.events] == ["Pulling", "Pulled", "ImageSubstituted"]
    assert not [event for event in sink.events if "Successfully pulled" in event[2]]


@pytest.mark.rule("node-semantics 15/policy")
@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("h:5000/a", "Always"),
        ("a:latest", "Always"),
        ("a:1", "IfNotPresent"),
        ("a@sha256:0", "IfNotPresent"),
    ],
)
def test_the_default_policy_follows_the_tag(image: str, policy: str) -> None:
    assert default_pull_policy(image) == policy


# -- imagePullSecrets ----------------------------------------------------------------------------------------------


def pull_secret(**auths: str) -> Any:
    config = {"auths": {key.replace("_", "."): {"username": user} for key, user in auths.items()}}
    return {"data": {".dockerconfigjson": base64.b64encode(json.dumps(config).encode()).decode()}}


SECRETS = {
    "one": pull_secret(r_example="one", other_example="no"),
    "two": pull_secret(r_example="two"),
    "broken": {"data": {".dockerconfigjson": "eA=="}},
    "unrelated": pull_secret(other_example="no"),
}


def pull_with(
    names: list[str], accepted: str = "", version: str = "1.36"
) -> tuple[list[str], list[tuple[str, str, str]], str]:
    """(users that were tried, "" for none; events; the error's text) of a pull of r.example/app:1."""

    async def main(world: World) -> Any:
        tried: list[str] = []

        class Registry(Images):
            async def pull_image(self, image: str, auth: AuthConfig | None = None) -> str:
                user = auth.username if auth is not None else ""
                tried.append(user)
                if user != accepted:
                    raise RuntimeServiceError(f"{user or 'nobody'} is refused")
                self.present = True
                return "sha256:1"

        class PlainSink(Sink):
            def event(self, obj: Any, event_type: str, reason: str, message: str, *, field_path: str = "") -> None:
                self.events.append((event_type, reason, message))

        async def secret(namespace: str, name: str) -> Any:
            assert namespace == "ns"
            if name == "forbidden":
                raise ContainerConfigError("forbidden")
            return SECRETS.get(name)

        sink = PlainSink()
        manager = PodImageManager(
            world=world,
            images=Registry(world, False, None),
            events=sink,
            recorder=sink,  # type: ignore[arg-type]
            features=status_features(version),
            pull_secrets=secret,
        )
        container = {"name": "app", "image": "r.example/app:1", "imagePullPolicy": "Always"}
        references = [{"name": name} for name in names]
        pod = {
            "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
            "spec": {"containers": [container], "imagePullSecrets": references},
        }
        text = ""
        try:
            await manager.ensure_image_exists(pod, container)
        except ImagePullError as error:
            text = f"{error.reason}: {error}"
        return tried, sink.events, text

    result: Any = run_virtual(main)
    return result


@pytest.mark.rule("node-semantics 15/secrets")
def test_each_credential_of_the_pod_is_tried_until_one_is_taken() -> None:
    assert pull_with(["one", "two"], "two")[0] == ["one", "two"]
    assert pull_with(["one", "two"], "one")[0] == ["one"]


def test_the_errors_of_several_credentials_are_told_together() -> None:
    assert pull_with(["one", "two"], "x")[2] == "ErrImagePull: [one is refused, two is refused]"
    assert pull_with(["one"], "x")[2] == "ErrImagePull: one is refused"


@pytest.mark.parametrize("names", [[], ["unrelated"], [""]])
def test_without_a_credential_for_the_registry_the_runtime_takes_what_it_knows(names: list[str]) -> None:
    tried, events, _ = pull_with(names)
    assert tried == [""]
    assert [reason for _, reason, _ in events] == ["Pulling", "Pulled"]


def test_since_1_37_missing_secrets_are_named_only_after_a_pull_that_failed() -> None:
    """(kubernetes#138432)"""
    _, events, _ = pull_with(["lost", "one"], "one", version="1.37")
    assert [reason for _, reason, _ in events] == ["Pulling", "Pulled"]
    _, events, _ = pull_with(["lost", "one"], "x", version="1.37")
    assert [reason for _, reason, _ in events] == ["Pulling", "FailedToRetrieveImagePullSecret", "Failed", "Failed"]


@pytest.mark.rule("node-semantics 9.1/pull-secrets")
@pytest.mark.parametrize("lost", [["lost"], ["forbidden"], ["lost", "forbidden"]])
def test_secrets_that_cannot_be_had_are_named_and_the_pull_is_tried(lost: list[str]) -> None:
    tried, events, _ = pull_with([*lost, "one"], "one")
    assert tried == ["one"]
    text = f"Unable to retrieve some image pull secrets ({', '.join(lost)})"
    assert events[0] == (
        "Warning",
        "FailedToRetrieveImagePullSecret",
        f"{text}; attempting to pull the image may not succeed.",
    )


def test_a_secret_that_is_no_docker_config_fails_the_pull() -> None:
    tried, _, text = pull_with(["broken", "one"], "one")
    assert (tried, text) == ([], "ErrImagePull: imagePullSecret broken: it is not JSON")


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("app", "docker.io/app"),
        ("team/app:1", "docker.io/team/app"),
        ("r.example/app", "r.example/app"),
        ("r.example:5000/app:1", "r.example:5000/app"),
        ("localhost/app@sha256:00", "localhost/app"),
        ("r.example:5000/team/app:1@sha256:00", "r.example:5000/team/app"),
    ],
)
def test_the_repository_of_an_image_name(image: str, repository: str) -> None:
    assert repository_of(image) == repository
