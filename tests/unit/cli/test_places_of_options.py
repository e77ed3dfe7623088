"""Where the options of `run` and `rollout` are allowed: the error that one gets elsewhere."""

import pytest
from click.testing import CliRunner

from lastcall.cli.places import CONTEXT
from lastcall.cli.rollout.command import EXCLUDED, PLACES, rollout
from lastcall.cli.run.command import PLACES as OF_RUN
from lastcall.cli.run.command import run

THERE = ("deployment/web", "--context", "theirs")
OWN = ("missing.yaml",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*OWN, "--url", "http://a"), "--url is for an experiment on the cluster of --context"),
        ((*OWN, "--from", "client"), "--from client is for an experiment on the cluster of --context"),
        ((*OWN, "--as", "ann"), "--as is for --context or --from-cluster: give one of them, too"),
        ((*OWN, "--from-cluster", "deployment/web"), "--from-cluster takes the place of MANIFEST"),
        ((*THERE, "--runs", "2"), "--runs is not for the cluster of --context"),
        ((*THERE, "--from", "node"), "--from node is not for the cluster of --context: --from pod or client"),
        ((*THERE, "--propagation", "1s"), "--propagation is for the cluster that rollout starts itself"),
        ((*THERE, "--kubernetes-version", "1.27"), "--kubernetes-version is for the cluster that rollout starts"),
        ((*THERE, "--url", "http://a", "--from", "pod"), "--url is for requests from this machine: --from client"),
        ((*THERE, "--url", "http://a", "--copy-to", "b"), "--copy-to: only a Pod there reaches the copy"),
        ((*THERE, "-k", "dir"), "with --context give the name of one workload there"),
        ((*OWN, "--find-safe", "--runs", "2"), "--find-safe does not take --runs"),
        ((*OWN, "--keep-on-failure", "--apply-advice"), "--keep-on-failure leaves one cluster running"),
    ],
)
def test_an_option_of_rollout_in_the_wrong_place_is_a_usage_error(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(rollout, arguments)
    assert result.exit_code == 2 and words in result.output, result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*OWN, "--delete"), "--delete is for --context: give that, too"),
        ((*OWN, "--kubeconfig", "a"), "--kubeconfig is for --context: give that, too"),
        (("a.yaml", "--context", "theirs", "--keep"), "--keep is for the cluster that run starts itself"),
        (("a.yaml", "--context", "theirs", "--max-pods", "5"), "--max-pods is for the cluster that run starts itself"),
        (("a.yaml", "--context", "theirs", "--ui"), "--ui shows a cluster of lastcall"),
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
        (run, {each for row in OF_RUN for each in row.names}),
    ):
        known = {each.name for each in command.params}
        assert names - known <= {"state_size", "feature_gates"} and set(CONTEXT) <= known
