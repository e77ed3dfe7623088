"""Spans at a receiver on loopback that decodes them with OpenTelemetry's own messages, in good and bad days."""

import asyncio
import threading
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Status
from story_samples import samples
from waiting import until

from lastcall.trace.exporting.addresses import parse_endpoint
from lastcall.trace.exporting.otlp import MOST_ANSWER_BYTES, MOST_TRIES, SpanSender
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

pytestmark = pytest.mark.loopback


@pytest.fixture(autouse=True, scope="module")
def _stories():
    """They have an event loop of their own: they are made before the tests' loops."""
    samples()


PROTOBUF = "application/x-protobuf"


class Receiver:
    """Answers as it is told to: a status, or `hang`. Keeps what it decoded."""

    def __init__(self):
        self.answer = 200
        self.rejects = 0
        self.spans = []
        self.resources = []
        self.headers = []
        self.requests = 0
        self.url = ""
        self.released = asyncio.Event()

    async def take(self, request):
        self.requests += 1
        self.headers.append(dict(request.headers))
        if self.answer == "hang":
            await self.released.wait()
            return web.Response(status=503)
        if self.answer != 200:
            return web.Response(status=self.answer, headers={"Location": "http://192.0.2.1/"})
        body = await request.read()  # aiohttp has undone the compression
        assert request.content_type == PROTOBUF
        message = ExportTraceServiceRequest.FromString(body)
        for resource_spans in message.resource_spans:
            self.resources.append({each.key: each.value.string_value for each in resource_spans.resource.attributes})
            for scope in resource_spans.scope_spans:
                assert scope.scope.name == "lastcall"
                self.spans += scope.spans
        reply = ExportTraceServiceResponse()
        if self.rejects:
            reply.partial_success.CopyFrom(ExportTracePartialSuccess(rejected_spans=self.rejects))
        return web.Response(body=reply.SerializeToString(), content_type=PROTOBUF)


@asynccontextmanager
async def receiving():
    receiver = Receiver()
    application = web.Application()
    application.router.add_post("/v1/traces", receiver.take)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield receiver
    finally:
        receiver.released.set()
        await runner.cleanup()


@asynccontextmanager
async def sending(url, notes, environment=None):
    sender = SpanSender(World(), parse_endpoint(url), notes.append, environment or {"OTEL_BSP_SCHEDULE_DELAY": "10"})
    async with Tasks() as tasks:
        running = tasks.spawn(sender.run(), name="otlp")
        try:
            yield sender
        finally:
            sender.close()
            running.cancel()


async def test_an_end_arrives_as_a_trace():
    async with receiving() as receiver, sending(receiver.url, notes := []) as sender:
        sender.ended(samples()["sigkill"][0])
        assert await sender.flush(30)
        told = sender.delivered()
    by_name = {each.name: each for each in receiver.spans}
    assert set(by_name) == {"DELETE", "preStop", "drain", "endpoint", "network", "unmount"}
    root = by_name["DELETE"]
    assert not root.parent_span_id and root.trace_id.hex() == samples()["sigkill"][0].pod.uid.replace("-", "")
    assert {each.parent_span_id for each in receiver.spans if each is not root} == {root.span_id}
    assert {each.trace_id for each in receiver.spans} == {root.trace_id}
    assert root.status.code == Status.STATUS_CODE_ERROR and "SIGKILL" in root.status.message
    (link,) = by_name["drain"].links
    assert link.span_id == by_name["preStop"].span_id
    attributes = {each.key: each.value for each in root.attributes}
    assert attributes["k8s.pod.name"].string_value == "sigkill-demo"
    assert attributes["lastcall.grace_seconds"].int_value == 10
    drain = by_name["drain"]
    assert 7.9 < (drain.end_time_unix_nano - drain.start_time_unix_nano) / 1e9 < 8.1
    assert receiver.resources[0]["service.name"] == "lastcall"
    assert told == {"sent": 6, "failed": 0, "dropped": 0, "waiting": 0}
    assert notes == []


async def test_the_standard_variables_hold(monkeypatch):
    monkeypatch.setenv("OTEL_SERVICE_NAME", "ends")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=prod")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    environment = {"OTEL_SERVICE_NAME": "ends", "OTEL_BSP_SCHEDULE_DELAY": "10"}
    async with receiving() as receiver, sending(receiver.url, [], environment) as sender:
        sender.ended(samples()["graceful"][0])
        assert await sender.flush(30)
    assert receiver.resources[0]["service.name"] == "ends"
    assert receiver.resources[0]["k8s.cluster.name"] == "prod"
    assert receiver.headers[0]["Authorization"] == "Bearer abc"
    assert receiver.headers[0]["Content-Encoding"] == "gzip"
    assert receiver.spans


async def test_a_sampler_that_takes_nothing_sends_nothing(monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    async with receiving() as receiver, sending(receiver.url, []) as sender:
        sender.ended(samples()["graceful"][0])
        assert await sender.flush(30)
    assert receiver.requests == 0


async def test_every_text_of_a_hostile_pod_arrives():
    async with receiving() as receiver, sending(receiver.url, []) as sender:
        sender.ended(samples()["hostile"][0])
        sender.ended(samples()["chatty"][0])
        assert await sender.flush(30)
    assert len({each.trace_id for each in receiver.spans}) == 2


async def test_a_receiver_that_is_down_is_told_and_stops_nothing(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    async with receiving() as gone:
        url = gone.url
    notes = []
    async with sending(url, notes) as sender:
        sender.ended(samples()["graceful"][0])
        await until(lambda: notes, "it is told")
        assert sender.delivered()["waiting"] > 0
        assert not await sender.flush(0.01)
    assert len(notes) == 1 and notes[0].startswith(f"spans cannot be sent to {url}/v1/traces: ")


async def test_what_nobody_takes_is_given_up_and_the_next_one_is_sent(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    notes = []
    async with receiving() as receiver, sending(receiver.url, notes) as sender:
        receiver.answer = 400
        sender.ended(samples()["graceful"][0])
        await sender.flush(60)
        assert receiver.requests == MOST_TRIES
        failed = sender.delivered()["failed"]
        assert failed > 0 and sender.delivered()["sent"] == 0
        receiver.answer = 200
        sender.ended(samples()["sigkill"][0])
        assert await sender.flush(30)
        assert sender.delivered() == {"sent": 6, "failed": failed, "dropped": 0, "waiting": 0}
    assert "it answers 400" in notes[0] and "again" in notes[1] and len(notes) == 2


async def test_a_receiver_that_sends_elsewhere_is_not_followed(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    notes = []
    async with receiving() as receiver, sending(receiver.url, notes) as sender:
        receiver.answer = 307
        sender.ended(samples()["graceful"][0])
        await until(lambda: notes, "it is told")
        assert "it answers 307, a redirect" in notes[0]
        assert sender.delivered()["sent"] == 0


async def test_what_a_receiver_refuses_of_a_batch_counts_as_failed():
    async with receiving() as receiver, sending(receiver.url, []) as sender:
        receiver.rejects = 2
        sender.ended(samples()["sigkill"][0])
        assert await sender.flush(30)
        assert sender.delivered() == {"sent": 4, "failed": 2, "dropped": 0, "waiting": 0}


async def test_a_receiver_refuses_no_more_spans_than_a_batch_has():
    async with receiving() as receiver, sending(receiver.url, []) as sender:
        receiver.rejects = 2**63 - 1
        sender.ended(samples()["sigkill"][0])
        assert await sender.flush(30)
        receiver.rejects = -5
        sender.ended(samples()["sigkill"][0])
        assert await sender.flush(30)
        assert sender.delivered() == {"sent": 6, "failed": 6, "dropped": 0, "waiting": 0}


@asynccontextmanager
async def answering(*parts, then_waits=False):
    """A receiver that answers with these bytes, whatever it is asked; yields its URL."""
    released, closed = asyncio.Event(), asyncio.Event()

    async def serve(reader, writer):
        with suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            for part in parts:
                writer.write(part)
                await writer.drain()
            if then_waits:
                await released.wait()
        writer.close()
        closed.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        released.set()
        await closed.wait()
        server.close()


@pytest.mark.parametrize("status", [b"200 OK", b"404 Not Found"])
async def test_an_answer_that_is_too_large_is_a_failure_and_not_read(monkeypatch, status):
    monkeypatch.setattr("lastcall.trace.exporting.otlp.FIRST_WAIT_SECONDS", 0.01)
    head = b"HTTP/1.1 " + status + b"\r\nContent-Length: 1073741824\r\n\r\n"
    notes = []
    async with (
        answering(head, b"x" * 2 * MOST_ANSWER_BYTES, then_waits=True) as url,
        sending(url, notes) as sender,
    ):
        sender.ended(samples()["sigkill"][0])
        assert await sender.flush(30)
        assert sender.delivered() == {"sent": 0, "failed": 6, "dropped": 0, "waiting": 0}
    assert "its answer has more than 1 MiB" in notes[0]


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["head", "body"])
async def test_an_answer_that_comes_byte_by_byte_is_given_up(monkeypatch, begin):
    monkeypatch.setattr("lastcall.trace.exporting.otlp.MOST_ANSWER_SECONDS", 0.3)
    monkeypatch.setattr("lastcall.trace.exporting.otlp.FIRST_WAIT_SECONDS", 0.01)
    notes = []
    async with answering(begin, b"x", then_waits=True) as url, sending(url, notes) as sender:
        sender.ended(samples()["sigkill"][0])
        assert await sender.flush(30)
        assert sender.delivered() == {"sent": 0, "failed": 6, "dropped": 0, "waiting": 0}
        assert len([each for each in threading.enumerate() if each.name == "otlp"]) == 1
    assert "no whole answer within" in notes[0]


async def test_a_slow_receiver_costs_a_bounded_queue_and_whole_traces(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "30")
    notes = []
    environment = {"OTEL_BSP_MAX_QUEUE_SIZE": "20", "OTEL_BSP_SCHEDULE_DELAY": "1"}
    async with receiving() as receiver, sending(receiver.url, notes, environment) as sender:
        receiver.answer = "hang"
        for _ in range(50):
            sender.ended(samples()["sigkill"][0])
        await until(lambda: receiver.requests, "it is asked")
        told = sender.delivered()
        assert (told["waiting"], told["dropped"]) == (18, 50 * 6 - 18)
        assert any("traces are dropped" in note for note in notes)
        assert not await sender.flush(0.05), "the end is not held up"


async def test_a_number_that_is_none_is_told_and_not_used():
    async with receiving() as receiver, sending(receiver.url, notes := [], {"OTEL_BSP_MAX_QUEUE_SIZE": "-1"}):
        assert notes == ["OTEL_BSP_MAX_QUEUE_SIZE='-1' is not a whole number above 0: 2048 is used"]


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_proxy_is_not_asked_for_this_machine(monkeypatch, variable):
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    async with receiving() as receiver, sending(receiver.url, []) as sender:
        sender.ended(samples()["graceful"][0])
        assert await sender.flush(30)
    assert receiver.spans
