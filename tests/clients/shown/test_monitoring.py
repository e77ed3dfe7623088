"""The alert rules and the dashboard of examples/monitoring, on a real Prometheus that scrapes real stories."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
import yaml
from story_samples import samples
from waiting import until

from lastcall.trace.exporting.addresses import parse_listen
from lastcall.trace.exporting.health import Health
from lastcall.trace.exporting.metrics import Metrics
from lastcall.trace.exporting.server import Server
from lastcall.world.world import World

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "examples" / "monitoring"
UNPACKED = ROOT / ".prometheus-debian" / "usr" / "bin"
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
QUERIES = [(panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel["targets"]]
VARIABLES = {"$namespace": ".*", "$workload": ".*", "$__rate_interval": "1m", "$__range": "5m"}
HEALTH = Health(watches={"pods": True, "events": True}, reconnects={"pods": 1}, gaps={"pods": 0}, pods=3)


def program(name):
    """From PATH, or as tools/get-debian-prometheus has unpacked it."""
    found = shutil.which(name) or shutil.which(name, path=str(UNPACKED))
    if found is None:
        assert os.environ.get("CI") != "true", f"{name} is missing: tools/get-debian-prometheus"
        pytest.skip(f"{name} is not here: tools/get-debian-prometheus")
    return found


@pytest.fixture(autouse=True, scope="module")
def _stories():
    samples()


def test_the_rules_pass_promtool_s_tests():
    for arguments in (["check", "rules", "rules.yaml"], ["test", "rules", "rules-test.yaml"]):
        done = subprocess.run([program("promtool"), *arguments], cwd=MONITORING, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_for_a_first_look_is_one():
    done = subprocess.run(
        [program("promtool"), "check", "config", "prometheus.yml"], cwd=MONITORING, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested():
    rules = yaml.safe_load((MONITORING / "rules.yaml").read_text())["groups"][0]["rules"]
    tests = yaml.safe_load((MONITORING / "rules-test.yaml").read_text())["tests"]
    fired = {each["alertname"] for test in tests for each in test["alert_rule_test"] if each["exp_alerts"]}
    assert fired == {each["alert"] for each in rules if "alert" in each}


def exported():
    """Every name of a series that the metrics can have."""
    metrics = Metrics(World(), lambda: HEALTH)
    metrics.deliveries("otlp", lambda: {"sent": 1, "waiting": 0})
    for endings in samples().values():
        metrics.ended(endings[0])
    body, _ = metrics.page("application/openmetrics-text")
    return {line.split("{")[0].split(" ")[0] for line in body.decode().splitlines() if not line.startswith("#")} | {
        f"{family}{end}" for family in re.findall(r"# TYPE (\S+) histogram", body.decode())
        for end in ("_bucket", "_count", "_sum")
    } | {f"{family}_total" for family in re.findall(r"# TYPE (\S+) counter", body.decode())} | set(
        re.findall(r"# TYPE (\S+) gauge", body.decode())
    )  # fmt: skip


@pytest.mark.parametrize("file", ["rules.yaml", "dashboard.json"])
def test_only_metrics_that_there_are_stand_in_rules_and_dashboard(file):
    named = set(re.findall(r"(?<![:\w])lastcall_[a-z0-9_]+(?!\w*:)", (MONITORING / file).read_text()))
    assert named - exported() == set()
    assert len(named) >= 7


@asynccontextmanager
async def prometheus(tmp_path, target):
    """A Prometheus that scrapes `target` each second; gives its URL, and ends it by its pid."""
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(MONITORING / "rules.yaml")],
        "scrape_configs": [{"job_name": "lastcall", "static_configs": [{"targets": [target]}]}],
    }
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    log = (tmp_path / "log").open("w")
    process = await asyncio.create_subprocess_exec(
        program("prometheus"),
        f"--config.file={tmp_path / 'prometheus.yml'}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        "--web.listen-address=127.0.0.1:0",
        "--enable-feature=exemplar-storage",
        stdout=log,
        stderr=log,
    )

    def address():
        assert process.returncode is None, (tmp_path / "log").read_text()
        found = re.search(r'msg="Listening on" address=(\S+)', (tmp_path / "log").read_text())
        return found and found[1]

    try:
        yield f"http://{await until(address, 'Prometheus listens')}"
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        log.close()


async def test_a_real_prometheus_scrapes_it_and_runs_every_query_of_the_dashboard(tmp_path):
    metrics = Metrics(World(), lambda: HEALTH)
    metrics.deliveries("otlp", lambda: {"sent": 7, "failed": 0, "dropped": 0, "waiting": 0})
    server = Server(metrics, lambda: HEALTH)
    async with (
        server.listening(parse_listen("127.0.0.1:0")) as listen,
        prometheus(tmp_path, str(listen)) as url,
        aiohttp.ClientSession() as session,
    ):

        async def ask(path, **query):
            async with session.get(f"{url}/api/v1/{path}", params=query) as answer:
                found = await answer.json()
            assert found["status"] == "success", (path, query, found)
            return found["data"]

        async def count(expression):
            return len((await ask("query", query=expression))["result"])

        async def ready():
            async with session.get(f"{url}/-/ready") as answer:
                return answer.status == 200

        await until(ready, "Prometheus is ready")
        await until(lambda: count("lastcall_build_info"), "the first scrape")
        for endings in samples().values():
            for ending in endings:
                metrics.ended(ending)
        await until(lambda: count("lastcall_pod_ends_total"), "a scrape with ends")
        for _ in range(2):
            metrics.ended(samples()["sigkill"][0])
        await until(lambda: count("increase(lastcall_container_sigkills_total[1m]) > 0"), "a scrape with more of them")

        empty = []
        for title, expression in QUERIES:
            for name, value in VARIABLES.items():
                expression = expression.replace(name, value)
            assert "$" not in expression
            if not await count(expression):
                empty.append(title)
        assert set(empty) <= {"Endpoints lost late"}, "nothing of the samples was lost late"

        found = await ask("query_exemplars", query="lastcall_container_sigkills_total", start="0", end="9999999999")
        pods = {each["labels"]["pod"] for series in found for each in series["exemplars"]}
        assert "sigkill-demo" in pods
        rules = [rule for group in (await ask("rules"))["groups"] for rule in group["rules"]]

        async def evaluated():
            rules[:] = [rule for group in (await ask("rules"))["groups"] for rule in group["rules"]]
            return all(rule["health"] == "ok" for rule in rules)

        await until(evaluated, "every rule was evaluated", said=lambda: [rule.get("lastError") for rule in rules])

        async def firing():
            alerts = (await ask("alerts"))["alerts"]
            return {each["labels"]["alertname"] for each in alerts} >= {"PodsKilledAtTheirEnd", "PreStopHooksFail"}

        await until(firing, "the alerts of the samples")
        targets = (await ask("targets"))["activeTargets"]
        assert [each["health"] for each in targets] == ["up"]
