"""Where the options of `run` and `rollout` are allowed: the error that one gets elsewhere."""

import pytest
from click.testing import CliRunner

from lastcall.cli.places import CONTEXT
from lastcall.cli.rollout.command import EXCLUDED, PLACES, rollout
from lastcall.cli.run.command import OF_LOAD, run
from lastcall.cli.run.command import PLACES as OF_RUN

THERE = ("deployment/web", "--context", "theirs")
OWN = ("missing.yaml",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*OWN, "--url", "http://a"), "--url needs --context: it applies to experiments on an existing cluster"),
        ((*OWN, "--from", "client"), "--from client needs --context: it applies to experiments"),
        ((*OWN, "--node-agent"), "--node-agent needs --context: it applies to experiments"),
        ((*THERE, "--node-agent-ptrace"), "--node-agent-… needs --node-agent"),
        ((*OWN, "--as", "ann"), "--as needs --context or --from-cluster"),
        ((*OWN, "--from-cluster", "deployment/web"), "--from-cluster replaces MANIFEST"),
        ((*THERE, "--runs", "2"), "--runs does not work with --context"),
        ((*THERE, "--from", "node"), "--from node does not work with --context: use --from pod or --from client"),
        ((*THERE, "--propagation", "1s"), "--propagation applies to the cluster that rollout starts itself"),
        ((*THERE, "--node-capacity", "cpu=1"), "--node-capacity applies to the cluster that rollout starts itself"),
        ((*THERE, "--kubernetes-version", "1.27"), "--kubernetes-version applies to the cluster that rollout starts"),
        ((*THERE, "--url", "http://a", "--from", "pod"), "--url needs requests from this machine: add --from client"),
        ((*THERE, "--url", "http://a", "--copy-to", "b"), "--copy-to: only Pods of that namespace reach the copy"),
        ((*THERE, "-k", "dir"), "with --context give the name of one workload there"),
        ((*OWN, "--find-safe", "--runs", "2"), "--find-safe does not work with --runs"),
        ((*OWN, "--keep-on-failure", "--apply-advice"), "--keep-on-failure keeps one cluster running"),
    ],
)
def test_an_option_of_rollout_in_the_wrong_place_is_a_usage_error(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(rollout, arguments)
    assert result.exit_code == 2 and words in result.output, result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*OWN, "--delete"), "--delete needs --context"),
        ((*OWN, "--node-agent"), "--node-agent needs --context"),
        ((*OWN, "--kubeconfig", "a"), "--kubeconfig needs --context"),
        (("a.yaml", "--context", "theirs", "--keep"), "--keep applies to the cluster that run starts itself"),
        (
            ("a.yaml", "--context", "theirs", "--max-pods", "5"),
            "--max-pods applies to the cluster that run starts itself",
        ),
        (
            ("a.yaml", "--context", "theirs", "--node-capacity", "cpu=1"),
            "--node-capacity applies to the cluster that run starts itself",
        ),
        (("a.yaml", "--context", "theirs", "--ui"), "--ui shows clusters that lastcall starts"),
        ((*OWN, "--load", "5", "--url", "http://a"), "--url needs --context: it applies to experiments"),
        ((*OWN, "--load", "5", "--from", "client"), "--from client needs --context"),
        (
            ("a.yaml", "--context", "theirs", "--load", "5", "--from", "node"),
            "--from node does not work with --context",
        ),
        ((*OWN, "--service", "web"), "--service applies to requests: add --load, such as --load 50"),
        ((*OWN, "--propagation", "1s"), "--propagation applies to requests: add --load"),
    ],
)
def test_an_option_of_run_in_the_wrong_place_is_a_usage_error(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(run, arguments)
    assert result.exit_code == 2 and words in result.output, result.output


@pytest.mark.parametrize("arguments", [(*OWN, "--runs", "1"), (*OWN, "--from", "node"), (*OWN, "--find-safe")])
def test_what_is_the_default_or_allowed_is_no_error(arguments: tuple[str, ...]) -> None:
    assert CliRunner().invoke(rollout, arguments).exit_code != 2


def test_the_tables_name_parameters_that_the_commands_have() -> None:
    for command, names in (
        (rollout, {each for row in PLACES for each in row.names} | {each.name for each in EXCLUDED}),
        (run, {each for row in (*OF_RUN, *OF_LOAD) for each in row.names}),
    ):
        known = {each.name for each in command.params}
        assert names - known <= {"state_size", "feature_gates"} and set(CONTEXT) <= known
