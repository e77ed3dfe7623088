"""What front asks a node's process."""

import pytest

from lastcall.kube.cluster.control.node import Cancel, NodeControlClient, NodeControlServer, ShutDown, node_control_pair
from lastcall.kube.cluster.errors import ControlError
from lastcall.kube.node.shutdown.decide import ShutdownGracePeriod, ShutdownNotSupported
from lastcall.world.messages import Message
from lastcall.world.tasks import Tasks


class Shutdown:
    """A node's; `refuses` is what it says of a shutdown that its version does not have."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses
        self.periods: list[ShutdownGracePeriod] = []

    async def shut_down(self, periods, progress) -> None:
        if self.refuses:
            raise ShutdownNotSupported(self.refuses)
        self.periods = list(periods)
        progress("ending")

    def cancel(self) -> None:
        self.periods = []


TWO_PERIODS = ShutDown(periods=[[0, 20], [1000, 10]])


class NotKnown(Message, verb="dance"):
    pass


async def ask(shutdown: Shutdown, message: Message = TWO_PERIODS) -> list[str]:
    fronts, nodes = node_control_pair()
    client = NodeControlClient(fronts)
    async with Tasks() as tasks:
        NodeControlServer(nodes, shutdown, tasks).start()
        client.start()
        try:
            return [text async for text in client.ask(message)]
        except ControlError as error:
            return [f"error: {error}"]
        finally:
            client.close()
            nodes.close()
            tasks.cancel()


async def test_a_shutdown_is_asked_for_by_priority_and_tells_how_far_it_is() -> None:
    shutdown = Shutdown()
    assert await ask(shutdown) == ["ending"]
    assert shutdown.periods == [ShutdownGracePeriod(0, 20), ShutdownGracePeriod(1000, 10)]


async def test_a_shutdown_that_a_version_does_not_have_is_an_error_in_its_words() -> None:
    words = "Kubernetes 1.23 has no shutdownGracePeriodByPodPriority"
    assert await ask(Shutdown(words)) == [f"error: {words}"]


async def test_a_shutdown_is_taken_back() -> None:
    shutdown = Shutdown()
    shutdown.periods = [ShutdownGracePeriod(0, 20)]
    assert await ask(shutdown, Cancel()) == []
    assert shutdown.periods == []


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (NotKnown(), "unknown verb 'dance': known are shutdown, cancel"),
        (ShutDown(periods=[[1, 2, 3]]), "periods must be a list of [priority, seconds]"),
        (ShutDown(periods=[1]), "periods must be list[list[int]], not [1]"),  # type: ignore[list-item]
    ],
)
async def test_unknown_verbs_and_wrong_fields_are_answered(message: Message, said: str) -> None:
    assert await ask(Shutdown(), message) == [f"error: {said}"]
