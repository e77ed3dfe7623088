"""`lastcall rollout --context`: an experiment on another cluster, one of `lastcall up`, that puts all of it back."""

import json
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import ordinary_user
import pytest
from api_snapshot import difference, everything
from engines.proxies import Severed, TLSEntrance
from published_schema import documented
from staying import Place
from waiting import eventually

pytestmark = pytest.mark.real_kernel

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "rollout" / "polite.yaml"


@pytest.mark.timeout(600)
def test_an_experiment_on_another_cluster_leaves_it_as_it_was_also_when_it_is_killed() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        facts = place.up("--name", "theirs", "--publish", "0:svc/shop/polite:80")
        kubeconfig, entrance = facts["kubeconfig"], f"http://{facts['published'][0]['address']}"
        (context,) = (
            each["name"] for each in json.loads(place.kubectl(kubeconfig, "config", "view", "-o", "json"))["contexts"]
        )
        place.kubectl(kubeconfig, "create", "namespace", "shop")
        place.kubectl(kubeconfig, "apply", "-n", "shop", "-f", str(EXAMPLE))
        place.kubectl(
            kubeconfig, "wait", "-n", "shop", "deployment/polite", "--for=condition=Available", "--timeout=120s"
        )
        before = everything(kubeconfig)
        there = ("--kubeconfig", kubeconfig, "--context", context)
        experiment = ("rollout", "deployment/polite", *there, "-n", "shop", "--url", entrance, "--load", "fresh=30")

        for words, why in (
            ((), "there is no terminal to ask on"),
            (("--yes=other",), "--yes=other confirms context other"),
            ((f"--yes={context}", "-n", "kube-system"), "runs no experiments in"),
            ((f"--yes={context}", "--disrupt", "drain"), "ends Pods of other workloads"),
            ((f"--yes={context}", "--from", "node"), "use --from pod or --from client"),
        ):
            refused = place.run(*experiment, *words)
            assert (refused.status, why in refused.err) == (2, True), refused.err
        assert difference(before, everything(kubeconfig)) == []

        result = place.run(*experiment, f"--yes={context}", "-o", "json", timeout=300)
        assert result.status == 0, (result.out, result.err)
        (found,) = json.loads(result.out)["experiments"]
        assert found["lost"] == 0 and found["total"] > 30 and found["control"]["lost"] == 0
        assert found["from"] == "client" and found["withoutOutcome"] == []
        assert difference(before, everything(kubeconfig)) == []

        host, _, port = facts["published"][0]["address"].partition(":")
        secure = TLSEntrance(host, int(port), place.home / "tmp")
        through = ("--url", secure.url, f"--yes={context}", "--disrupt", "scale-in")
        refused = place.run(*experiment, *through)
        assert refused.status != 0 and "this machine does not trust\nlastcall: fix: --url-ca FILE" in refused.err, (
            refused.err
        )
        assert difference(before, everything(kubeconfig)) == []
        scaled = place.run(*experiment, *through, "--url-ca", str(secure.ca), "-o", "json", timeout=300)
        secure.close()
        assert scaled.status == 0, (scaled.out, scaled.err)
        (found,) = json.loads(scaled.out)["experiments"]
        assert found["lost"] == 0 and found["total"] > 30 and found["withoutOutcome"] == []
        assert difference(before, everything(kubeconfig)) == []

        process = place.start(*experiment, f"--yes={context}", "-o", "json")
        _read_until_it_begins(process)  # `doctor` takes longer than the whole update
        eventually(
            lambda: "lastcall-ledger-" in place.kubectl(kubeconfig, "get", "configmaps", "-n", "shop"), "a ledger"
        )
        process.send_signal(signal.SIGKILL)
        process.communicate()
        doctor = ("doctor", *there)
        left = place.run(*doctor)
        assert (left.status, "restore spec.template" in left.out) == (1, True), left.out
        documented(json.loads(place.run(*doctor, "-o", "json").out))
        denied = place.run("cleanup", *there)
        assert (denied.status, "there is no terminal to ask on" in denied.err) == (2, True), denied.err
        for _ in range(2):
            done = place.ok("cleanup", *there, f"--yes={context}")
            assert f"nothing is left in context {context}" in done
        assert place.run(*doctor).status == 0
        assert difference(before, everything(kubeconfig)) == []
        place.ok("down", "--name", "theirs")


def _read_until_it_begins(process: subprocess.Popen[str]) -> list[str]:
    assert process.stderr is not None
    told = []
    for line in process.stderr:
        told.append(line)
        if "rollout begins" in line:
            return told
    raise AssertionError(told)


@pytest.mark.timeout(600)
def test_an_api_server_that_is_away_in_the_middle_of_a_rollout_is_waited_for() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        facts = place.up("--name", "theirs", "--publish", "0:svc/shop/naive:80")
        kubeconfig, entrance = facts["kubeconfig"], f"http://{facts['published'][0]['address']}"
        config = json.loads(place.kubectl(kubeconfig, "config", "view", "--raw", "-o", "json"))
        server = urlsplit(config["clusters"][0]["cluster"]["server"])
        (context,) = (each["name"] for each in config["contexts"])
        place.kubectl(kubeconfig, "create", "namespace", "shop")
        place.kubectl(kubeconfig, "apply", "-n", "shop", "-f", str(EXAMPLE.with_name("naive.yaml")))
        place.kubectl(kubeconfig, "wait", "-n", "shop", "deployment/naive", "--for=condition=Available")
        before = everything(kubeconfig)
        way = Severed(str(server.hostname), server.port or 443)
        config["clusters"][0]["cluster"]["server"] = f"https://{server.hostname}:{way.port}"
        broken = place.home / "tmp" / "broken.kubeconfig"
        broken.write_text(json.dumps(config))
        broken.chmod(0o644)
        experiment = ("rollout", "deployment/naive", "--kubeconfig", str(broken), "--context", context, "-n", "shop")
        options = (f"--yes={context}", "--url", entrance, "--load", "fresh=30", "-o", "json")
        process = place.start(*experiment, *options)
        told = _read_until_it_begins(process)
        time.sleep(0.5)  # the rollout is under way when the connection breaks
        way.cut()
        time.sleep(3)  # how long the connection is gone
        way.open_again()
        out, err = process.communicate(timeout=300)
        way.close()
        broken.unlink()
        told.append(err)
        assert process.returncode in (0, 3), told
        assert "Traceback" not in err and "answers again" in err, told
        (found,) = json.loads(out)["experiments"]
        assert found["withoutOutcome"] == [] and found["total"] > 30
        for each in found["lostRequests"]:
            assert (each["causeId"] == "notSeen") == bool(each["notKnown"]), each
        assert {each["name"] for each in found["pods"]}, "its Pods were followed"
        eventually(lambda: difference(before, everything(kubeconfig)) == [], "all is put back")
        place.ok("down", "--name", "theirs")
