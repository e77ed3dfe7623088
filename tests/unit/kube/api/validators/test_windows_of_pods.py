"""Windows options that are told apart in no recording: too long ones, and Pods of processes of the host."""

import pytest

from lastcall.kube.api.validators.containers.windows import host_process, windows_options


def test_a_credential_has_at_most_64_kib() -> None:
    told = windows_options({"windowsOptions": {"gmsaCredentialSpec": "x" * (64 * 1024)}}, "spec.securityContext")
    assert told == []
    [told] = windows_options(
        {"windowsOptions": {"gmsaCredentialSpec": "é" * (32 * 1024) + "x"}}, "spec.securityContext"
    )
    assert (told.field, told.detail) == (
        "spec.securityContext.windowsOptions.gmsaCredentialSpec",
        "gmsaCredentialSpec size must be under 64 KiB",
    )


@pytest.mark.parametrize(
    ("of_pod", "of_containers", "network", "fields"),
    [
        (None, [None, None], False, []),
        (False, [None, False], False, []),
        (True, [None, True], True, []),
        (True, [None, True], False, ["spec.hostNetwork"]),
        (None, [True, None], True, ["spec"]),
        (False, [True], True, ["c0.securityContext.windowsOptions.hostProcess"]),
    ],
)
def test_all_containers_are_processes_of_the_host_or_none(of_pod, of_containers, network, fields) -> None:
    def said(value):
        return {"securityContext": {"windowsOptions": {} if value is None else {"hostProcess": value}}}

    spec = {**said(of_pod), "hostNetwork": network}
    containers = [(f"c{at}", said(each)) for at, each in enumerate(of_containers)]
    assert [each.field for each in host_process(spec, containers)] == fields
