"""What `lastcall up` says to ports that cannot be published, before anything starts."""

import pytest
from click.testing import CliRunner

from lastcall.cli.staying.clusters import published_text
from lastcall.cli.up import up


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--publish", "8080:web"], "[ADDRESS:]PORT:svc|pod/[NAMESPACE/]NAME:PORT is needed"),
        (["--publish", "0.0.0.0:8080:svc/web:80"], "published on loopback only"),
        (
            ["--publish", "8080:svc/a:80", "--publish", "localhost:8080:svc/b:80"],
            "127.0.0.1:8080 is published twice",
        ),
    ],
)
def test_bad_ports_are_bad_input(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(up, arguments)
    assert result.exit_code == 2
    assert says in " ".join(result.output.split())


def test_each_published_port_has_a_line() -> None:
    published = [
        {"address": "127.0.0.1:8080", "target": "svc/default/web:80"},
        {"address": "127.0.0.1:80", "target": "svc/default/balanced", "message": "taken"},
    ]
    first, second = published_text({"published": published}).splitlines()
    assert first == "  published   127.0.0.1:8080 → svc/default/web:80"
    assert second.endswith("(not published: taken)")
    assert published_text({}) == ""
