"""The node agent on the rules of a real kernel, in a network namespace of the test's own."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.real_kernel

SCRIPT = """
import json, time
from lastcall.trace.agent.rule_watch import RuleWatch
from lastcall.kube.cri.sandbox.shim.loop import Loop
from lastcall.kube.nftables import statements as nft
from lastcall.kube.nftables.objects import AddChain, AddRule, Chain, DeleteChain, FlushChain, Hook, Transaction
from lastcall.kube.proxy.netlink_sink import NetlinkSink
from lastcall.world.clock import RealClock

CHAIN = "endpoint-5OJB2KTY-shop/web/tcp/p80__10.0.0.7/80"
sink, loop, told = NetlinkSink(table="kube-proxy"), Loop(), []
sink.apply_now(Transaction((
    AddChain(Chain(CHAIN)), AddRule(CHAIN, (nft.dnat_to("TCP", "10.0.0.7", 80),)),
    AddChain(Chain("prerouting", (), Hook("nat", "prerouting", -100))),
    AddRule("prerouting", (nft.verdict("jump " + CHAIN),)),
)))
watch = RuleWatch(loop, RealClock(), lambda *what: told.append(what))

def wait(seconds=60.0, until=lambda: False):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not until():
        loop.call_later(0.02, lambda: None)
        loop.run_once()

watch.follow(["10.0.0.7", "10.0.0.9"])
wait(until=lambda: told)
sink.apply_now(Transaction((AddChain(Chain("other")),)))  # a change that is none of it
wait(0.3)
before = time.monotonic_ns()
sink.apply_now(Transaction((FlushChain("prerouting"),)))
wait(until=lambda: len(told) > 1)
after = told[1][4] - before
watch.forget(["10.0.0.7", "10.0.0.9"])
sink.apply_now(Transaction((AddRule("prerouting", (nft.verdict("jump " + CHAIN),)),)))
wait(0.3)
print(json.dumps({"told": [each[:4] for each in told], "after": after}))
"""


def test_it_hears_when_a_hook_leads_to_an_address_no_longer() -> None:
    command = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["told"] == [["10.0.0.9", "", False, False], ["10.0.0.7", "web", True, False]]
    assert found["after"] >= 0


def test_without_the_capability_it_says_what_is_missing() -> None:
    command = [sys.executable, "-m", "lastcall.trace.agent", "--cgroup", "/sys/fs/cgroup", "--rules"]
    drop = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-all"]
    prefix = drop if os.geteuid() == 0 else []
    done = subprocess.run([*prefix, *command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 1
    assert "fix: hostNetwork and CAP_NET_ADMIN, or no --rules" in done.stderr
