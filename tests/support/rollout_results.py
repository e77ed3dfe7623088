"""What an experiment of `lastcall rollout` found, made by hand."""

from typing import Any

from rollout_lives import pod_life

from lastcall.experiment.rollout.result import Result
from lastcall.traffic.account import account
from lastcall.traffic.outcome import Outcome
from lastcall.traffic.verdict import judge


def rollout_result(name: str = "web-1", workload: str = "web", **more: Any) -> Result:
    """One of three requests is answered, one is reset by the Pod `name`, and one is refused."""
    life = pod_life("u", name=name, ip="10.244.0.2", ready=1.0, routed=1.1, deleted=10.0, stop=12.0, term=12.0,
                   exited=14.0, unrouted=13.0, killed=True)  # fmt: skip
    outcomes = [Outcome(1, "fresh", 8.0, 8.0, 8.1, 1, 0.0, 200, "10.244.0.2", ""),
                Outcome(2, "fresh", 12.5, 12.5, 14.0, 2, 0.0, 0, "10.244.0.2", "reset before bytes"),
                Outcome(3, "fresh", 13.5, 13.5, 13.5, 0, 0.0, 0, "", "refused")]  # fmt: skip
    spec = {"template": {"spec": {"containers": [{"name": "app"}]}}}
    owner = {"kind": "Deployment", "metadata": {"name": workload}, "spec": spec}
    found = account(outcomes, [life], [], 10.0)
    values = {"account": found, "judgement": judge(found, [life], owner, 80), "lives": [life], "outcomes": outcomes,
              "owner": owner, "what": "Deployment web", "service": "web", "disrupt": "rollout", "propagation": "1s",
              "source": "node", "began": 10.0, "seconds": 4.0}  # fmt: skip
    return Result(**{**values, **more})
