"""Names, addresses, endpoints, paths, headers and links of proxied requests."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.apiserver.proxying import headers, links, paths, targets
from lastcall.kube.apiserver.proxying.bodies import Compressed, Decompressed, ends, sniffed, through
from lastcall.kube.apiserver.proxying.html import LONGEST_TAG, LinkRewriter
from lastcall.kube.apiserver.proxying.targets import Asked, Endpoint, Target

PREFIX = "/api/v1/namespaces/d/pods/p/proxy"


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("p", Asked("", "p", "")),
        ("p:80", Asked("", "p", "80")),
        ("https:p:web", Asked("https", "p", "web")),
        ("https:p:", Asked("https", "p", "")),
        ("https:p", Asked("", "https", "p")),
    ],
)
def test_a_name_has_a_scheme_only_with_two_colons(text: str, asked: Asked) -> None:
    assert targets.asked_for("pod", text) == asked


@pytest.mark.parametrize("text", ["ftp:p:80", "a:b:c:d", ":80", "::", "", "http::80"])
def test_a_name_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(StatusError, match="invalid service request") as caught:
        targets.asked_for("service", text)
    assert caught.value.code == 400


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "169.254.169.254", "fe80::1", "224.0.0.1", "ff02::1",
     "0.0.0.0", "::", "255.255.255.255", "::ffff:169.254.1.1", "localhost", "", "10.0.0.1 ", "10.1", "0x0a000001"],
)  # fmt: skip
def test_addresses_of_the_server_itself_and_of_its_links_are_refused(address: str) -> None:
    pod = {"spec": {"containers": [{"ports": [{"containerPort": 80}]}]}, "status": {"podIPs": [{"ip": address}]}}
    with pytest.raises(StatusError, match="address not allowed"):
        targets.pod_target(Asked("", "p", ""), "p", pod)
    with pytest.raises(StatusError, match="address not allowed"):
        targets.node_target(Asked("", "n", "22"), "n:22", address, 10250)


def test_only_the_kubelet_s_own_port_gets_the_api_server_s_certificate() -> None:
    def target(port: str, scheme: str = "") -> Target:
        return targets.node_target(Asked(scheme, "n", port), "", "172.18.0.2", 10250)

    assert target("") == target("10250") == target("10250", "http") == Target("https", "172.18.0.2", "10250", True)
    assert target("9100") == Target("http", "172.18.0.2", "9100")
    assert target("010250", "https") == Target("https", "172.18.0.2", "010250")


@pytest.mark.parametrize("port", ["web", "-1", "+80", "8 0", "80/x", "²", "80\r\nX: y"])
def test_the_port_of_a_pod_is_a_number(port: str) -> None:
    pod = {"spec": {"containers": [{"ports": [{"name": "web", "containerPort": 80}]}]}}
    with pytest.raises(StatusError) as caught:
        targets.pod_target(Asked("", "p", port), f"p:{port}", {**pod, "status": {"podIPs": [{"ip": "10.0.0.1"}]}})
    assert caught.value.code == 400


def test_an_endpoint_is_a_ready_address_with_a_pod_of_the_namespace_each_as_likely_as_the_next() -> None:
    def address(ip: str, pod: str, namespace: str = "d") -> dict[str, object]:
        return {"ip": ip, "targetRef": {"kind": "Pod", "name": pod, "namespace": namespace}}

    endpoints = {
        "subsets": [
            {
                "addresses": [address("10.0.0.1", "a"), address("10.0.0.2", "b"), address("10.0.0.3", "c", "other")],
                "notReadyAddresses": [address("10.0.0.9", "z")],
                "ports": [{"name": "web", "port": 80}, {"name": "admin", "port": 81}],
            },
            {"addresses": [{"ip": "10.0.0.4"}], "ports": [{"name": "web", "port": 80}]},
            {"addresses": [address("10.0.0.5", "e")], "ports": [{"port": 80}]},
        ]
    }
    first, second = Endpoint("10.0.0.1", 80, "a"), Endpoint("10.0.0.2", 80, "b")
    assert targets.endpoints_of(endpoints, "d", "web", lambda n: 0) == [first, second]
    assert targets.endpoints_of(endpoints, "d", "web", lambda n: 1) == [second, first]
    assert targets.endpoints_of(endpoints, "d", "", lambda n: 0) == [Endpoint("10.0.0.5", 80, "e")]
    assert targets.endpoints_of(endpoints, "d", "nope", lambda n: 0) == []
    assert targets.endpoints_of({}, "d", "web", lambda n: 0) == []


def test_an_address_that_is_not_its_pod_s_leads_nowhere() -> None:
    pod = {"status": {"podIPs": [{"ip": "10.0.0.1"}]}}
    assert targets.has_address(pod, "10.0.0.1")
    assert not targets.has_address(pod, "10.0.0.2")
    assert not targets.has_address({}, "10.0.0.1")
    assert not targets.has_address(None, "10.0.0.1")


@pytest.mark.parametrize(
    ("rest", "sent"),
    [
        ("/a/../../../../b", "/b"),
        ("/a%2f..%2f..%2fb", "/b"),
        ("/a%0d%0aHost:%20x", "/a%0D%0AHost:%20x"),
        ("/%ff%00", "/%FF%00"),
        ("/a//b/", "/a/b/"),
        ("/a/.", "/a"),
    ],
)
def test_a_path_is_clean_and_escaped_before_it_is_sent(rest: str, sent: str) -> None:
    raw = f"{PREFIX}{rest}"
    whole = paths.asked_path(raw, ())
    assert whole is not None
    decoded = whole.path.removeprefix(PREFIX)
    asked = paths.asked_path(raw, tuple(part for part in decoded.split("/") if part))
    assert asked is not None
    assert paths.escape(asked.rest) == sent


def test_a_query_passes_as_it_is_but_for_what_would_end_it() -> None:
    asked = paths.asked_path(f"{PREFIX}/x?a=%zz&b=1;c?d\r\nHost:\xe9", ("x",))
    assert asked is not None
    assert asked.query == "a=%zz&b=1;c?d%0D%0AHost:%C3%A9"
    assert paths.asked_path(f"{PREFIX}/%zz", ("%zz",)) is None


def test_what_proves_a_client_never_passes() -> None:
    secrets = [
        ("Authorization", "Bearer s"), ("authorization", "Basic s"), ("X-Remote-User", "s"), ("x-remote-group", "s"),
        ("X-Remote-Extra-Scopes", "s"), ("X-Remote-Uid", "s"), ("Impersonate-User", "s"),
        ("Impersonate-Extra-x", "s"), ("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.s"),
    ]  # fmt: skip
    kept = [("X-A", "1"), ("Connection", "upgrade, x-hop"), ("X-Hop", "2")]
    passed = headers.upgrade_headers([*secrets, *kept], "10.0.0.9")
    assert passed == [*kept, ("X-Forwarded-For", "10.0.0.9")]
    plain = headers.request_headers([*secrets[:-1], *kept, ("X-Forwarded-For", "1.1.1.1")], "10.0.0.9", "/u")
    assert plain == [("X-A", "1"), ("X-Forwarded-For", "1.1.1.1, 10.0.0.9"), ("X-Forwarded-Uri", "/u")]


def test_a_header_that_would_be_two_is_not_answered() -> None:
    given = [("X-A", "a\rX-Evil: 1"), ("X B", "1"), ("X-C", "c\x00"), ("X-D", "d"), ("Transfer-Encoding", "chunked")]
    assert headers.response_headers(given) == [("X-D", "d")]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("/x?a=b#c", f"{PREFIX}/x?a=b#c"),
        ("x", "x"),
        ("//10.0.0.1:80/x", f"{PREFIX}/x"),
        ("http://10.0.0.1:80/x/", f"{PREFIX}/x/"),
        ("http://10.0.0.1:81/x", "http://10.0.0.1:81/x"),
        ("https://me:6443/x", f"https://me:6443{PREFIX}/x"),
        (f"{PREFIX}/x", f"{PREFIX}/x"),
        ("/../../x", "/api/v1/namespaces/d/pods/x"),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("HTTP://e/%41", "http://e/%41"),
    ],
)
def test_a_link_to_the_target_itself_leads_through_the_proxy(url: str, expected: str) -> None:
    assert links.rewritten(links.parse(url), "10.0.0.1:80", "me:6443", PREFIX) == expected


@pytest.mark.parametrize("text", ["/%zz", "/%", "http://[", ":x", "/a\r\nb", "1a:b", "http://a b/"])
def test_a_text_that_is_no_url_is_said_to_be_none(text: str) -> None:
    with pytest.raises(links.NoURL):
        links.parse(text)


HOSTILE = [b"<a x='", b"<", b"<a ", b"<a b==", b"<!--", b"</", b"<script></s", b"<a/", b"<a =", b"<a x ", b"<!", b"<?"]


@pytest.mark.parametrize("piece", HOSTILE)
def test_html_that_never_ends_a_tag_is_neither_kept_nor_lost(piece: bytes) -> None:
    rewriter = LinkRewriter(str.upper)
    data = piece * (4 * LONGEST_TAG // len(piece))
    out = b""
    for at in range(0, len(data), 997):
        out += rewriter.feed(data[at : at + 997])
        assert len(rewriter._kept) <= LONGEST_TAG + 997
    out += rewriter.finish()
    if piece != b"<script></s":
        assert out == data


def test_html_is_the_same_however_it_is_cut() -> None:
    page = (
        '<A HREF=/x CLASS="é&quot;">é</A><title><a href="/no"></title><p>1 < 2</p><img src="/i"/>'
        "<script>if (a</b/) '<a href=/no>'</script><a href='/y' href2>z</a><textarea></texta</textarea><br><a href=/"
    ).encode()
    expected = (
        '<a href="[/x]" class="é&#34;">é</A><title><a href="/no"></title><p>1 < 2</p><img src="[/i]"/>'
        '<script>if (a</b/) \'<a href=/no>\'</script><a href="[/y]" href2="">z</a><textarea></texta</textarea><br>'
        "<a href=/"
    ).encode()
    for size in (1, 2, 3, 5, 11, len(page)):
        rewriter = LinkRewriter(lambda text: f"[{text}]")
        out = b"".join(rewriter.feed(page[at : at + size]) for at in range(0, len(page), size)) + rewriter.finish()
        assert out == expected, size


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_little_that_becomes_much_comes_in_small_pieces(encoding: str) -> None:
    packer = Compressed(encoding)
    packed = b"".join([*packer.feed(bytes(50 << 20)), *packer.finish()])
    assert len(packed) < 1 << 20
    steps = [Decompressed(encoding)]
    sizes = [len(piece) for piece in through(steps, packed)] + [len(piece) for piece in ends(steps)]
    assert sum(sizes) == 50 << 20
    assert max(sizes) <= 16 << 10


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"hello", "text/plain; charset=utf-8"),
        (b"  <html>x", "text/html; charset=utf-8"),
        (b"<htmlx", "text/plain; charset=utf-8"),
        (b"a\x00b", "application/octet-stream"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"<?xml ?>", "text/xml; charset=utf-8"),
    ],
)
def test_a_type_is_told_from_what_the_body_begins_with(data: bytes, expected: str) -> None:
    assert sniffed(data) == expected
