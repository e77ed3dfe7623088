"""What a real Kubernetes 1.36.2 said of configurations of admission webhooks, and what is said here."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.errors import invalid
from lastcall.kube.api.resources import MUTATINGWEBHOOKCONFIGURATIONS, VALIDATINGWEBHOOKCONFIGURATIONS
from lastcall.kube.api.validation import validate_create
from lastcall.kube.api.validators.cluster.webhooks import url_errors

URLS = json.loads((Path(__file__).parent / "urls.json").read_text())
"""(url, what the real server said of it without the form that it desires)."""
RECORDED = json.loads((Path(__file__).parent / "configurations.json").read_text())


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: each["case"])
def test_configurations_of_webhooks_get_the_defaults_and_the_errors_of_a_real_server(recorded: dict[str, Any]) -> None:
    obj = copy.deepcopy(recorded["object"])
    mutating = obj["kind"] == "MutatingWebhookConfiguration"
    resource = MUTATINGWEBHOOKCONFIGURATIONS if mutating else VALIDATINGWEBHOOKCONFIGURATIONS
    set_defaults(resource, obj)
    errors = validate_create(resource, obj)
    if recorded["status"] < 400:
        assert errors == []
        webhooks = [{key: value for key, value in each.items() if value != []} for each in obj["webhooks"]]
        assert (webhooks or None) == recorded["webhooks"], "an empty list is not written"
    else:
        assert invalid(resource, obj["metadata"]["name"], errors).message == recorded["message"]


@pytest.mark.parametrize(("url", "message"), URLS, ids=ascii)
def test_a_url_that_go_does_not_read_is_refused_with_its_words(url: str, message: str) -> None:
    found = [str(each).replace("; desired format: https://host[/path]", "") for each in url_errors(url, "url")]
    assert (f"[{', '.join(found)}]" if len(found) > 1 else "".join(found)) == message
