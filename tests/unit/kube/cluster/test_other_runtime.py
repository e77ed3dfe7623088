"""Whether a container runtime can be used: what is looked at before anything starts."""

import subprocess

import pytest

from lastcall.kube.cluster import plan
from lastcall.kube.cluster.errors import ClusterStartError
from lastcall.kube.cluster.options import ClusterOptions
from lastcall.kube.cluster.runtime.other import place, runtime
from lastcall.kube.cluster.runtime.other.checks import socket_of, taken_network

HEAD = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"


def route(name, destination, mask):
    return f"{name}\t{destination}\t00000000\t0001\t0\t0\t0\t{mask}\t0\t0\t0\n"


def test_an_endpoint_is_the_path_of_a_socket():
    assert socket_of("unix:///run/containerd/containerd.sock") == "/run/containerd/containerd.sock"


@pytest.mark.parametrize("text", ["/run/x.sock", "unix://x.sock", "tcp://127.0.0.1:1", "unix:/run/x.sock"])
def test_anything_else_is_told_with_the_form_that_would_do(text):
    with pytest.raises(ValueError, match=r"write unix:///run/containerd/containerd\.sock"):
        socket_of(text)


def test_a_network_in_the_place_of_ours_is_found_and_our_own_link_is_not():
    assert taken_network(HEAD + route("eth0", "00000000", "00000000") + route("cni0", "00004D0A", "00FFFFFF")) == ""
    assert taken_network(HEAD + route("docker1", "000012AC", "0000FFFF")) == "172.18.0.0/16"
    assert taken_network(HEAD + route("lastcall-node", "0000600A", "0000FFFF")) == ""


def test_a_directory_is_a_leftover_when_nobody_holds_its_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(place, "ROOT", str(tmp_path / "root"))
    made = place.Place.make("one")
    assert place.instances() == ["one"] and place.lives("one")
    assert not place.lives("other")
    made.remove()
    made.remove()
    assert place.instances() == [] and not (tmp_path / "root").exists()


def hangs(command, **_):
    raise subprocess.TimeoutExpired(command, 90)


def refuses(command, **_):
    return subprocess.CompletedProcess(command, 1, "", "Traceback\ndoes not serve CRI v1; fix: name one that does\n")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (hangs, "has not done within 90 s what lastcall asked for; fix: start the runtime again"),
        (refuses, "does not serve CRI v1; fix: name one that does"),
    ],
)
def test_a_runtime_that_cannot_be_used_is_the_reason_why_the_cluster_cannot_start(monkeypatch, answer, why):
    monkeypatch.setattr(runtime.subprocess, "run", answer)
    options = ClusterOptions(container_runtime="/run/x.sock")
    with pytest.raises(ClusterStartError) as caught:
        plan._other_runtime(options, "boot", options.layouts[0])
    assert str(caught.value) == f"--container-runtime-endpoint unix:///run/x.sock: the container runtime {why}"
