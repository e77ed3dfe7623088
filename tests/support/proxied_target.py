"""What proxy subresources lead to in tests: an HTTP server that says whatever a path asks of it, right or wrong.

A real kube-apiserver was asked with the same one (tests/unit/kube/apiserver/proxying/recorded.json).
"""

import asyncio
import gzip
import json
from urllib.parse import unquote

HTML = (
    b'<html><head><base href="/base"><link href="/x.css"></head><body background="/b.png">\n'
    b'<a href="/abs/path">1</a><a href="rel/path">2</a><a href=\'/q?a=1&amp;b=2\' TITLE="a &quot;b">3</a>'
    b'<A HREF=/unquoted>4</A><img src="/i.png" longdesc="/l"/><a href="http://other.example/z">5</a>'
    b'<a href="//HOST/y">6</a><a href="http://HOST/y/?k=v#f">7</a><script src="/s.js">var a = "<a href=\'/no\'>";'
    b'</script><!-- <a href="/comment"> --><p href="/nop" data="/d">x</p><a href="">8</a><a href="/%zz">9</a>'
    b'<a href="/a b">10</a><form action="/f/"><input type=submit formaction="/g"></form>'
    b'<a href="/api/v1/namespaces/px/pods/up">11</a><a checked href=/c>12</a><style>a{b:url(/u)}</style>'
    b'<a href="mailto:x@y">m</a><a href="?q=1">q</a><a href="#f">h</a><a href="/../up/./x//y/">dots</a></body></html>'
)
LINKS = b"<a href='/x'>"
TOO_MUCH = [
    ("Connection", "X-Hop, close"), ("X-Hop", "1"), ("Keep-Alive", "3"), ("Proxy-Authenticate", "Basic"),
    ("Upgrade", "h2c"), ("X-End", "2"), ("Set-Cookie", "a=b"), ("Set-Cookie", "c=d"),
    ("Access-Control-Allow-Origin", "*"), ("Access-Control-Allow-Methods", "*"), ("Access-Control-Allow-Headers", "*"),
    ("Access-Control-Allow-Credentials", "true"),
]  # fmt: skip
SWITCH = [("Upgrade", "websocket"), ("Connection", "Upgrade")]


def html(host: str) -> bytes:
    return HTML.replace(b"HOST", host.encode())


def said(status: str, headers: list[tuple[str, object]] | list[tuple[str, str]], body: bytes = b"hello") -> bytes:
    head = f"HTTP/1.1 {status}\r\n" + "".join(f"{key}: {value}\r\n" for key, value in headers)
    return f"{head}\r\n".encode("latin-1") + body


def whole(body: bytes, *headers: tuple[str, str], status: str = "200 OK") -> bytes:
    return said(status, [*headers, ("Content-Length", str(len(body)))], body)


def answer(line: str, head: str, body: bytes) -> bytes:
    """To a request line, its headers as text, and its body."""
    method, target, _ = line.split(" ", 2)
    path, _, query = target.partition("?")
    asked = path.rstrip("/").rsplit("/", 1)[-1]
    host = next((each[5:].strip() for each in head.split("\r\n") if each.lower().startswith("host:")), "")
    page, html_type = html(host), ("Content-Type", "text/html")
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(page), page)
    canned = {
        "html": whole(page, ("Content-Type", "text/html; charset=utf-8"), ("X-A", "b")),
        "html-chunked": said("200 OK", [html_type, ("Transfer-Encoding", "chunked")], chunks),
        "html-gzip": whole(gzip.compress(page, mtime=0), html_type, ("Content-Encoding", "gzip")),
        "html-badgzip": whole(LINKS, html_type, ("Content-Encoding", "gzip")),
        "redirect": whole(b"", ("Location", unquote(query).replace("HOST", host)), status="302 Found"),
        "status": whole(b"hello", status=f"{query} Whatever Words"),
        "204": said("204 No Content", [], b""),
        "304": said("304 Not Modified", [("ETag", '"x"')], b""),
        "headers": whole(b"ok", *TOO_MUCH),
        "http10": b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end",
        "noctype": whole(b"<html><body>hi</html"),
        "garbage": b"this is not HTTP at all\r\n\r\n",
        "close": b"",
        "short": said("200 OK", [("Content-Length", "10")], b"abc"),
        "injected": said("200 OK", [("X-A", "a\rX-Evil: 1"), ("Content-Length", "2")], b"ok"),
        "second": whole(b"one") + whole(b"two"),
        "te": said("200 OK", [("Transfer-Encoding", "gzip, chunked")], b"2\r\nok\r\n0\r\n\r\n"),
        "ws": said("101 Switching Protocols", [*SWITCH, ("Sec-WebSocket-Accept", "abc"), ("X-A", "b")], b"early"),
        "wsecho": said("101 Switching Protocols", SWITCH, f"{method} {target}\n{head}".encode("latin-1") + body),
        "noupgrade": whole(b"hello"),
        "403upgrade": whole(b"hello", ("X-A", "b"), ("Content-Type", "text/plain"), status="403 Forbidden"),
    }
    if asked in canned:
        return canned[asked]
    seen = {
        "request": f"{method} {target}",
        "headers": [each for each in head.split("\r\n") if each],
        "body": body.decode("latin-1"),
    }
    return whole(json.dumps(seen).encode(), ("Content-Type", "application/json"))


async def _body(reader: asyncio.StreamReader, head: str) -> bytes:
    """As it came: chunks with their lengths in brackets."""
    small = head.lower()
    if "transfer-encoding: chunked" in small:
        body, size = b"", 1
        while size:
            size = int((await reader.readline()).strip(), 16)
            body += b"[%x]" % size + (await reader.readexactly(size + 2))[:-2]
        return body
    if "content-length:" in small:
        return await reader.readexactly(int(small.split("content-length:")[1].split("\r\n")[0]))
    return b""


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """For `asyncio.start_server`. One answer for each connection; behind a 101 everything comes back in brackets."""
    try:
        line, _, head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").partition("\r\n")
        out = answer(line, head, await _body(reader, head))
        upgraded = b" 101 " in out[:13]
        if line.startswith("HEAD ") and not upgraded:
            out = out.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        writer.write(out)
        await writer.drain()
        while upgraded and (data := await reader.read(65536)):
            writer.write(b"<" + data + b">")
            if b"bye" in data:
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
