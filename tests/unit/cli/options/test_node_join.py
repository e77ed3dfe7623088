"""What is wrong with the options of `lastcall node join` is told before anything is asked or made."""

import pytest
from click.testing import CliRunner

from lastcall.cli.commands import cli

TOKEN = "abcdef.0123456789abcdef"
HASH = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["10.0.0.1:6443"], "needs --token"),
        (["10.0.0.1:6443", "--token", TOKEN], "needs --discovery-token-ca-cert-hash"),
        (["10.0.0.1:6443", "--token", "secret", "--discovery-token-ca-cert-hash", HASH], "6 characters, a dot and 16"),
        (["10.0.0.1:6443", "--token", TOKEN, "--discovery-token-ca-cert-hash", "sha256:12"], "64 hexadecimal digits"),
        (["--token", TOKEN], "--token is for SERVER"),
        (["http://10.0.0.1"], "is not an API server's HOST:PORT"),
        (["10.0.0.1:6443/path"], "is not an API server's HOST:PORT"),
        (["10.0.0.1:port", "--token", TOKEN, "--discovery-token-ca-cert-hash", HASH], "is not an API server's HOST"),
        (["10.0.0.1:99999", "--token", TOKEN, "--discovery-token-ca-cert-hash", HASH], "is not an API server's HOST"),
        (["10.0.0.1?x", "--token", TOKEN, "--discovery-token-ca-cert-hash", HASH], "is not an API server's HOST:PORT"),
        (["--kubeconfig", "a", "--bootstrap-kubeconfig", "b"], "exclude each other"),
        (["--kubeconfig", "a", "10.0.0.1:6443", "--token", TOKEN], "exclude each other"),
        (["--node-name", "UPPER_case"], "is not a valid Node name"),
        (["--node-name", "two..dots"], "is not a valid Node name"),
        (["--node-ip", "fe80::1"], "is not an IPv4 address"),
        (["--pod-cidr", "10.1.0.0/30"], "between a /8 and a /28"),
        (["--pod-cidr", "10.1.0.1/24"], "is not an IPv4 network"),
        (["--cluster-dns", "10.0.0.10,dns"], "is not an IPv4 address"),
        (["--node-labels", "alone"], "is not KEY=VALUE"),
        (["--register-with-taints", "a:Never"], "is not KEY[=VALUE]:EFFECT"),
        (["--detach", "--die-with-parent"], "exclude each other"),
    ],
)
def test_bad_input_is_status_2_and_names_the_way_out(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(cli, ["node", "join", *arguments])
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())
    assert "secret" not in done.output.replace("--token", ""), "the token itself is not repeated"
