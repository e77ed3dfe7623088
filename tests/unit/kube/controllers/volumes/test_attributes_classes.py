"""Who uses a VolumeAttributesClass."""

import pytest

from lastcall.kube.controllers.volumes.attributes_classes import classes_of_claim, is_used


@pytest.mark.parametrize(
    ("claim", "names"),
    [
        ({}, set()),
        ({"spec": {"volumeAttributesClassName": ""}}, set()),
        ({"spec": {"volumeAttributesClassName": "asked"}}, {"asked"}),
        ({"spec": {}, "status": {"currentVolumeAttributesClassName": "now"}}, {"now"}),
        (
            {
                "spec": {"volumeAttributesClassName": "asked"},
                "status": {
                    "currentVolumeAttributesClassName": "now",
                    "modifyVolumeStatus": {"targetVolumeAttributesClassName": "next", "status": "Pending"},
                },
            },
            {"asked", "now", "next"},
        ),
    ],
)
def test_a_claim_uses_the_class_it_asks_for_the_one_it_has_and_the_one_it_is_getting(claim, names) -> None:
    assert classes_of_claim(claim) == names


@pytest.mark.parametrize(
    ("claims", "volumes", "used"),
    [
        ((), (), False),
        (({"spec": {"volumeAttributesClassName": "gold"}},), (), True),
        ((), ({"spec": {"volumeAttributesClassName": "gold"}},), True),
        (({"spec": {"volumeAttributesClassName": "silver"}},), ({"spec": {}},), False),
    ],
)
def test_a_class_is_used_by_claims_and_by_volumes(claims, volumes, used) -> None:
    assert is_used("gold", claims, volumes) is used
