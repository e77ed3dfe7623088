"""Every fuzzer there is. One more is one line; its share is of the time, relative to the others."""

import targets_api
import targets_node
import targets_streams
import whole_api
from harness import Fuzzer, decoder

FUZZERS: tuple[Fuzzer, ...] = (
    decoder(targets_api.JSON_BODIES),
    decoder(targets_api.YAML_BODIES, 2),
    decoder(targets_api.PROTOBUF, 2),
    decoder(targets_api.PATCHES),
    decoder(targets_api.HOSTS, 0.3),
    decoder(targets_api.STORE, 1),
    decoder(targets_streams.SPDY),
    decoder(targets_streams.SPDY_SESSION),
    decoder(targets_streams.WEBSOCKET),
    decoder(targets_streams.DNS, 2),
    decoder(targets_streams.SHIM_WIRE),
    decoder(targets_streams.PACKETS),
    decoder(targets_node.CNI_RESULTS),
    decoder(targets_node.CNI_CONFIGURATIONS),
    decoder(targets_node.RECORDS),
    decoder(targets_node.JOURNALS),
    decoder(targets_node.NETLINK),
    decoder(targets_node.IMAGES, 2),
    decoder(targets_node.DOCKER_CONFIG),
    whole_api.fuzzer(6),
)
