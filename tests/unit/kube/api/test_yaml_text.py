"""YAML as Kubernetes 1.36 reads it (each row was asked there), and what a hostile text may cost."""

from itertools import pairwise

import pytest

from lastcall.kube.api.text import go_yaml as yaml_text
from lastcall.kube.api.text.go_yaml import YAMLError, decode
from lastcall.kube.api.text.json_bounds import MAX_DEPTH


def read(text: str | bytes) -> tuple[object, list[str]]:
    problems: list[str] = []
    return decode(text.encode() if isinstance(text, str) else text, problems), problems


def why(text: str | bytes) -> str:
    with pytest.raises(YAMLError) as refused:
        read(text)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, True) for word in ("y", "Y", "yes", "Yes", "ON", "true", "True", "!!bool yes", '!!bool "yes"')),
        *((word, False) for word in ("n", "N", "no", "off", "OFF", "false")),
        *((word, word) for word in ("yEs", "tRue", "nULL", "inf", "nan", "=", "<<", "22:22", "1.2.3", "+", ".")),
        *((word, None) for word in ("", "~", "null", "NULL", "!!null ~", "&x")),
        *((word, 511) for word in ("0777", "0o777", "0O777")),
        *((word, 31) for word in ("0x1F", "+0x1F", "0x1_F", "!!int 0x1F")),
        ("-0o7", -7), ("0b101", 5), ("-0b101", -5), ("1_000", 1000), ("1_", 1), ("-_1", -1), ("089", 89), ("08", 8),
        ("5.", 5), ("-.5", -0.5), ("+.5", 0.5), ("1e3", 1000), ("1.e3", 1000), ("12e03", 12000), ("1e-400", 0),
        ("1e21", 1e21), ("1.0", 1), ("-0.0", 0), ("!!float 1", 1), ("!!float 0x10", 16),
        ("100000000000000000000.0", 1e20),
        ("18446744073709551615", 1.8446744073709552e19), ("-9223372036854775808", -(2**63)),
        ("0777777777777777777777777777", 7.777777777777778e26),
        *((word, word) for word in ("_1", "0b2", "0x", "1e", "1e+", "1e400", "0x1p4", "0x" + "F" * 20, "1" * 5000)),
        *((word, word) for word in ("2001-01-01", "2001-01-01T00:00:00Z", "2001-1-1")),
        ("!!timestamp 2001-01-01", "2001-01-01"), ("!!binary aGk=", "hi"), ("!!binary /w==", "\ufffd"),
        ("!!str 1", "1"), ("!!str", ""), ("!foo bar", "bar"), ("!!foo 1", "1"), ('"1"', "1"), ("'y'", "y"),
        ("!!set {a, b}", {"a": None, "b": None}), ("!!str [a]", ["a"]),
        ("!!python/object/apply:os.system [ls]", ["ls"]),
        ("{? a : b}", {"a": "b"}), ("[a,]", ["a"]), ('"a\n  b"', "a b"),
    ],
)  # fmt: skip
def test_a_value_is_what_kubernetes_takes_it_for(text: str, value: object) -> None:
    (found,) = read(f"v: {text}\n")[0].values()
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("1", "1"), ("0x10", "16"), ("y", "true"), ("1e3", "1000"), ("1e30", "1e+30"), (".5", "0.5"), (".inf", ".inf"),
        ("1000000.0", "1e+06"), ("123456789.0", "1.2345679e+08"), ("0.1234567891", "0.12345679"), ("1e300", ".inf"),
        ("0.00001", "1e-05"), ("12345.678", "12345.678"), ("!!binary aGk=", "hi"),
        ("9223372036854775807", "9223372036854775807"),
    ],
)  # fmt: skip
def test_a_key_becomes_the_text_that_json_needs(key: str, text: str) -> None:
    assert read(f"{{{key}: v}}") == ({text: "v"}, [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: .inf", "json: unsupported value: +Inf"),
        ("a: -.inf", "json: unsupported value: -Inf"),
        ("a: .nan", "json: unsupported value: NaN"),
        ("!!int x", "yaml: cannot decode !!str `x` as a !!int"),
        ("!!int 1.0", "yaml: cannot decode !!float `1.0` as a !!int"),
        ("!!float true", "yaml: cannot decode !!bool `true` as a !!float"),
        ("!!int", "yaml: cannot decode !!null `` as a !!int"),
        ("!!timestamp 2001-13-01", "yaml: cannot decode !!str `2001-13-01` as a !!timestamp"),
        ('!!binary "x!"', "yaml: !!binary value contains invalid base64 data"),
        ("{[a, b]: c}", 'yaml: invalid map key: []interface {}{"a", "b"}'),
        ("{{a: b}: c}", 'yaml: invalid map key: map[interface {}]interface {}{"a":"b"}'),
        ("{~: f}", 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "f"'),
        ("{18446744073709551615: a}", 'unsupported map key of type: uint64, key: 0xffffffffffffffff, value: "a"'),
        ("*x", "yaml: unknown anchor 'x' referenced"),
        ("a: &a [*a]", "yaml: anchor 'a' value contains itself"),
        ("a: &a {b: *a}", "yaml: anchor 'a' value contains itself"),
        ("d: &d {<<: *d}", "yaml: anchor 'd' value contains itself"),
        *((text, "yaml: map merge requires map or sequence of maps as the value")
          for text in ("<<: a", "<<:", "<<: [1]", "<<: [[{a: b}]]", "{x: &x [{a: b}], d: {<<: *x}}",
                       "{x: &x a, d: {<<: *x}}")),
        ("%YAML 1.2\n---\na: b", "yaml: found incompatible YAML document"),
        ("a: \x01", "yaml: control characters are not allowed"),
        (b"a: \xff", "yaml: invalid leading UTF-8 octet"),
        ("x:\n  y: [a, b\n", "yaml: line 2: did not find expected ',' or ']'"),
        ("x:\n  y: \"a\n", "yaml: line 3: found unexpected end of stream"),
        ("x:\n\ty: a\n", "yaml: line 2: found character that cannot start any token"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told_in_go_s_words(text: str | bytes, words: str) -> None:
    assert why(text) == words


def test_maps_are_merged_and_what_is_there_twice_is_told() -> None:
    assert read("x: &x {a: 1}\nd: {<<: *x, c: 2}")[0]["d"] == {"a": 1, "c": 2}
    assert read("x: &x {a: 1}\nd: {b: &b {<<: *x, c: 2}, e: {<<: *b}}")[0]["d"]["e"] == {"a": 1, "c": 2}
    assert read("x: &x {a: 1}\nz: &z {a: 2, f: 3}\nd: {<<: [*x, *z]}") == (
        {"x": {"a": 1}, "z": {"a": 2, "f": 3}, "d": {"a": 1, "f": 3}},
        ['line 1: key "a" already set in map'],
    )
    assert read("x: &x {a: 1}\nd: {a: 2, <<: *x}") == (
        {"x": {"a": 1}, "d": {"a": 1}},
        ['line 1: key "a" already set in map'],
    )
    assert read('{a: 1,\n a: 2, "<<": 3, !!str <<: 4}') == (
        {"a": 2, "<<": 4},
        ['line 2: key "a" already set in map', 'line 2: key "<<" already set in map'],
    )
    assert read('{1: a, "1": b}') == ({"1": "b"}, [])
    assert read("s: {<<: &s [{a: 1}]}\nt: *s")[0] == {"s": {"a": 1}, "t": [{"a": 1}]}


def test_the_first_document_is_read_and_no_other() -> None:
    for text in ("a: 1\n---\n[[[", "a: 1\n...\n]]]", "---\na: 1\n---\n", "%TAG ! tag:x,2000:\n---\na: 1"):
        assert read(text)[0] == {"a": 1}
    for text in ("", "# a\n", "---\n---\na: 1"):
        assert read(text)[0] is None
    assert read("a: 1".encode("utf-16"))[0] == read(b"\xef\xbb\xbfa: 1")[0] == {"a": 1}


def test_what_an_alias_stands_for_is_not_shared() -> None:
    found = read("a: &a {b: [1]}\nc: *a\nd: [*a, *a]")[0]
    assert found == {"a": {"b": [1]}, "c": {"b": [1]}, "d": [{"b": [1]}, {"b": [1]}]}
    found["c"]["b"].append(2)
    assert found["a"] == found["d"][0] == {"b": [1]}
    assert read("x: &k a\nd: {*k : b, c: &k d, e: *k}")[0]["d"] == {"a": "b", "c": "d", "e": "d"}


def bomb(levels: int) -> str:
    names = "abcdefghijklmnopqrstu"
    lines = [f"{names[0]}: &{names[0]} [{','.join(['x'] * 9)}]"]
    for old, new in pairwise(names[: levels + 1]):
        lines.append(f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]")
    return "\n".join(lines)


def test_aliases_may_not_stand_for_nearly_everything() -> None:
    assert len(str(read(bomb(2))[0])) > 1000
    for levels in (3, 9, 20):
        assert why(bomb(levels)) == "yaml: document contains excessive aliasing"
    keys = ", ".join(f"a{number}: 1" for number in range(1000))
    assert why(f"x: &x {{{keys}}}\nd: {{<<: [{'*x,' * 100_000}]}}") == "yaml: document contains excessive aliasing"
    text = f"x: &x {'x' * 1_000_000}\nd: [{'*x,' * 50}]"
    assert why(text) == "yaml: document contains excessive aliasing"


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", "")])
def test_a_text_is_as_deep_as_is_allowed_and_no_deeper(begin: str, end: str) -> None:
    levels = MAX_DEPTH if begin != "? " else 1
    assert read(begin * levels + "a" + end * levels)[0] is not None
    assert f"exceeded max depth of {MAX_DEPTH}" in why(begin * (MAX_DEPTH + 1) + "a" + end * (MAX_DEPTH + 1))
    assert f"exceeded max depth of {MAX_DEPTH}" in why(begin * 1_000_000)


def test_a_text_of_too_many_values_or_directives_is_refused() -> None:
    assert len(read("[" + "1," * 1000 + "]")[0]) == 1000
    assert "more than" in why("[" + "1," * 1_500_000 + "]")
    assert "directives" in why("".join(f"%TAG !{number}! x\n" for number in range(250_000)) + "---\na")


def test_a_big_text_is_read_in_slices() -> None:
    steps = yaml_text.steps(b"- a\n" * 10 * yaml_text.SLICE)
    assert sum(1 for _ in steps) == 10
