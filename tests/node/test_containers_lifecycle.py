"""A container from its start to its end: exit codes, signals, deadlines, leftovers."""

from shim_world import ShimWorld, inside

from lastcall.cri.api import ContainerState


@inside
async def test_a_command_that_ends_by_itself_is_completed_with_its_output_in_the_log(world: ShimWorld):
    status, output = await world.run("sh", "-c", "echo hello; echo oops >&2")
    assert (status.exit_code, status.reason) == (0, "Completed")
    assert output.splitlines() == ["hello", "oops"]
    assert status.created_at <= status.started_at <= status.finished_at
    assert status.state == ContainerState.CONTAINER_EXITED
    sequence = world.sequence()
    assert sequence[0] == "ProcessStarted"
    assert sequence[-1] == "ProcessExited"
    assert sorted(sequence[1:-1]) == ["Output", "Output"]
    started = world.find("ProcessStarted")[0]
    assert started.facts["exe"] == "/bin/busybox"
    assert (started.pod_uid, started.container) == ("uid-1", "c")
