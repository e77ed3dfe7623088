import pytest

from lastcall.kube.api.validators.containers.hooks import STOP_SIGNALS
from lastcall.kube.cri.api import (
    ContainerConfig,
    ContainerMetadata,
    Mount,
    PodSandboxConfig,
    PodSandboxMetadata,
    RuntimeServiceError,
)
from lastcall.kube.cri.sandbox.container_spec import process_args, start_spec, stop_signal
from lastcall.kube.cri.sandbox.shim.procfs import signal_name, signal_number
from lastcall.kube.cri.sandbox.spec import ImageConfig, RootFilesystem

SANDBOX = PodSandboxConfig(PodSandboxMetadata("p", "u", "ns"), hostname="host", log_directory="/logs/p")


def config(**more: object) -> ContainerConfig:
    return ContainerConfig(ContainerMetadata("c", 2), "image", **more)


@pytest.mark.parametrize(
    ("command", "args", "entrypoint", "cmd", "expected"),
    [
        ((), (), ("e",), ("c",), ("e", "c")),
        ((), ("a",), ("e",), ("c",), ("e", "a")),
        (("k",), (), ("e",), ("c",), ("k",)),
        (("k",), ("a",), ("e",), ("c",), ("k", "a")),
        ((), (), (), ("c",), ("c",)),
        ((), ("a",), (), (), ("a",)),
    ],
)
def test_command_replaces_the_entrypoint_and_drops_the_cmd(command, args, entrypoint, cmd, expected):
    assert process_args(config(command=command, args=args), ImageConfig(entrypoint=entrypoint, cmd=cmd)) == expected


def test_nothing_to_run_is_an_error():
    with pytest.raises(RuntimeServiceError, match="no command specified"):
        process_args(config(), ImageConfig())


@pytest.mark.rule("node-semantics 21.1/config, 22.3/stop-signal")
@pytest.mark.parametrize(
    ("own", "image", "number"),
    [
        ("", "", 15),
        ("", "SIGQUIT", 3),
        ("SIGUSR1", "SIGQUIT", 10),
        ("", "int", 2),
        ("", "9", 9),
        ("SIGRTMIN+3", "", 37),
        ("SIGRTMAX-2", "", 62),
        ("SIGCLD", "", 17),
    ],
)
def test_the_stop_signal_is_the_container_s_then_the_image_s_then_term(own, image, number):
    assert stop_signal(config(stop_signal=own), ImageConfig(stop_signal=image)) == number


@pytest.mark.parametrize("name", ["SIGNOPE", "0", "65", "-1", "SIGRTMIN+x"])
def test_an_unknown_stop_signal_is_an_error(name):
    with pytest.raises(RuntimeServiceError, match="unknown signal"):
        stop_signal(config(stop_signal=name), ImageConfig())


def test_the_environment_is_hostname_then_image_then_pod_and_image_binds_come_first():
    root = RootFilesystem(("/l",), (Mount("/usr", "/usr", True),), ImageConfig(cmd=("c",), env=("A=1",)))
    given = config(envs=(("A", "2"),), mounts=(Mount("/data", "/v"),), log_path="c/0.log")
    spec = start_spec("id", "sid", given, SANDBOX, root, "/d")
    assert spec["env"] == ["HOSTNAME=host", "A=1", "A=2"]
    assert [mount["target"] for mount in spec["mounts"]] == ["/usr", "/data"]
    assert spec["mounts"][0]["readonly"] is True
    assert spec["logPath"] == "/logs/p/c/0.log"
    assert spec["rootfs"]["upper"] == "/d/upper"
    assert (spec["cwd"], spec["attempt"]) == ("/", 2)


def test_every_stop_signal_that_the_api_takes_is_known_and_shown_by_a_name_that_it_takes() -> None:
    for name in STOP_SIGNALS["linux"]:
        assert signal_name(signal_number(name)) in STOP_SIGNALS["linux"]
