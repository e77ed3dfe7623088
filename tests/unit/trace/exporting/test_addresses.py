"""Where it listens, and where it sends to."""

import pytest

from lastcall.trace.exporting.addresses import AddressError, Listen, parse_endpoint, parse_listen


@pytest.mark.parametrize(
    ("text", "listen", "loopback"),
    [
        ("127.0.0.1:9464", Listen("127.0.0.1", 9464), True),
        ("localhost:0", Listen("127.0.0.1", 0), True),
        ("[::1]:9464", Listen("::1", 9464), True),
        ("0.0.0.0:9464", Listen("0.0.0.0", 9464), False),
        ("[::]:9464", Listen("::", 9464), False),
        ("10.1.2.3:80", Listen("10.1.2.3", 80), False),
    ],
)
def test_an_address_to_listen_at(text, listen, loopback):
    assert parse_listen(text) == listen
    assert listen.loopback is loopback
    assert parse_listen(str(listen)) == listen


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (":9464", "fix: 127.0.0.1:9464, or 0.0.0.0:9464 for every address"),
        ("9464", "has no port"),
        ("127.0.0.1:", "not a port"),
        ("127.0.0.1:65536", "not a port"),
        ("127.0.0.1:٣", "not a port"),
        ("::1:9464", "brackets"),
        ("example.com:9464", "not an IP address"),
        ("", "has no port"),
    ],
)
def test_a_bad_address_is_named_with_the_fix(text, said):
    with pytest.raises(AddressError, match="fix") as error:
        parse_listen(text)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
        ("http://[::1]:4318/v1/traces", "http://[::1]:4318/v1/traces"),
        ("https://otel.example.com/otlp", "https://otel.example.com/otlp/v1/traces"),
    ],
)
def test_an_endpoint_has_otlp_s_path(text, url):
    assert parse_endpoint(text) == url


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("http://collector:4318", "plain http"),
        ("http://127.0.0.1.example.com:4318", "plain http"),
        ("http://localhost.example.com", "plain http"),
        ("grpc://127.0.0.1:4317", "not an http or https URL"),
        ("127.0.0.1:4318", "not an http or https URL"),
        ("https://me:secret@example.com", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("https://example.com/?a=b", "query"),
        ("http://127.0.0.1:99999", "not a URL"),
        ("", "not an http or https URL"),
    ],
)
def test_a_bad_endpoint_is_named_with_the_fix(text, said):
    with pytest.raises(AddressError, match="fix") as error:
        parse_endpoint(text)
    assert said in str(error.value)
    assert "secret" not in str(error.value)
