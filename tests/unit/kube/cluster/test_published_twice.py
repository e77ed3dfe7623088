"""Two that want one port of this machine: the message names the other one."""

import pytest

from lastcall.kube.cluster.errors import PortTaken
from lastcall.kube.cluster.published.front import PublishedPorts
from lastcall.kube.cluster.published.port import parse_published_port
from lastcall.world.world import World

pytestmark = pytest.mark.loopback


def test_a_port_that_this_cluster_publishes_already_is_not_said_to_be_another_process_s() -> None:
    ports = PublishedPorts((), node_ports=False, node_ip="", world=World())
    try:
        where = ports.add(parse_published_port("0:pod/web:80"))
        number = where.rpartition(":")[2]
        with pytest.raises(PortTaken, match=rf"127\.0\.0\.1:{number} is already published for pod/default/web:80"):
            ports.add(parse_published_port(f"{number}:svc/other:80"))
        other = PublishedPorts((), node_ports=False, node_ip="", world=World())
        with pytest.raises(PortTaken, match="is in use by another process"):
            other.add(parse_published_port(f"{number}:svc/other:80"))
    finally:
        ports.close()
