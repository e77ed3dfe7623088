"""Whether a container runtime can be used: what is looked at before anything starts."""

import pytest

from lastcall.kube.cluster.runtime.other import place
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
