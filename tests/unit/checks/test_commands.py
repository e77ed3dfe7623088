"""Rules about commands, documents and the version find what they are for."""

from checks.commands import consoles, options, schemas, version


def test_an_option_that_is_written_twice_is_found(find) -> None:
    one = '@click.option("--a", type=int, default=1, help="One.")\ndef f(): ...\n'
    files = {
        "cli/a.py": one,
        "cli/b/c.py": one.replace("One.", "Another."),
        "cli/d.py": one.replace("1", "2"),
        "node/a.py": one,
    }
    assert find(options, files) == ["cli/b/c.py:1"]


def test_a_console_of_its_own_is_found(find) -> None:
    files = {"cli/a.py": "Console()\nConsole(file=x)\nSafeConsole(width=3)\nstdout_console()\n"}
    assert find(consoles, files) == ["cli/a.py:1", "cli/a.py:3"]


def test_a_document_without_a_schema_and_a_schema_without_a_document_are_found(find) -> None:
    files = {
        "a.py": 'x = "lastcall/ending/v1"\ny = "lastcall/new/v1"\n',
        "/docs/ending-v1.schema.json": '{"$id": "lastcall/ending/v1"}',
        "/docs/gone-v1.schema.json": '{"$id": "lastcall/gone/v1"}',
        "/docs/config-v1.schema.json": '{"$id": "lastcall/config/v1"}',
    }
    assert find(schemas, files) == ["docs/gone-v1.schema.json:1", "a.py:2"]


def test_a_second_version_is_found(find) -> None:
    assert find(version, {"_version.py": '__version__ = "1"\n', "a.py": '__version__ = "2"\n'}) == ["a.py:1"]
