"""What a Pod costs the API server, in requests, so that nothing is added unseen."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real_kernel]

PROJECT = Path(__file__).resolve().parents[2]
PODS = 5

STATUS = "PATCH pods/status"
"""Accepted, network ready, Running, terminating, ended: on a busy machine the kubelet writes two of them at once."""

OF_A_POD = {
    "POST pods": 1,  # the client
    "GET pods": 2,  # the client
    "DELETE pods": 2,  # the client, and the kubelet when all is gone
    STATUS: 5,
    "POST events": 5,  # Pulled, ImageSubstituted, Created, Started, Killing
    "POST serviceaccounts/token": 1,
}


def test_the_life_of_a_pod_takes_at_most_sixteen_requests() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.counts", "--requests", "--pods", str(PODS)],
        cwd=PROJECT, stdout=subprocess.PIPE, check=True, timeout=120,
    )  # fmt: skip
    answered = json.loads(done.stdout)
    of_nodes = {request for request in answered if request.partition(" ")[2].startswith("nodes")}
    of_pods = {request: count for request, count in answered.items() if request not in of_nodes}
    most = {request: count * PODS for request, count in OF_A_POD.items()}
    assert of_pods | {STATUS: most[STATUS]} == most
    assert of_pods[STATUS] <= most[STATUS]
