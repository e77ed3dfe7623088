"""Spans to a collector, by OTLP over HTTP, with OpenTelemetry's own SDK (the extra `lastcall[otel]`).

Nobody waits for a receiver: stories wait in a bounded queue, whole traces of them are thrown away when it is full, and
a batch that nobody takes is given up after a few tries. What the standard variables say holds: OTEL_SERVICE_NAME,
OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_EXPORTER_OTLP_HEADERS, …_TIMEOUT, …_CERTIFICATE, …_COMPRESSION,
OTEL_BSP_MAX_QUEUE_SIZE, …_SCHEDULE_DELAY, …_MAX_EXPORT_BATCH_SIZE.

A request blocks, so each is sent by a thread that the end of the process does not wait for.
"""

# check: allow opentelemetry, requests because it sends spans over OTLP
# check: many attributes SpanSender because OpenTelemetry has so many options and counts of a batch processor

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from lastcall._version import __version__
from lastcall.endings import Ending
from lastcall.trace.exporting.addresses import is_loopback_url
from lastcall.trace.exporting.health import Delivered
from lastcall.trace.exporting.spans import Span, SpanId, spans_of
from lastcall.world.world import World

MOST_TRIES = 5
"""Of one batch, each with the exporter's own retries within its timeout."""
FIRST_WAIT_SECONDS = 1.0
MOST_WAIT_SECONDS = 30.0
MOST_ANSWER_BYTES = 1 << 20
"""Of one answer, unpacked. A collector's has some bytes."""
MOST_ANSWER_SECONDS = 60.0
"""For one try. The exporter's own timeout begins anew with each byte that comes; a longer one is cut to this."""
MOST_DECISIONS = 1000
"""Spans of decisions that are remembered, so that a rollout's is sent once."""

_SCOPE = InstrumentationScope("lastcall", __version__)
_SDK_LOG = logging.getLogger("opentelemetry")


class SpanSender:
    """`ended(ending)` never waits; `run` sends until it is cancelled; `flush` waits for what is queued."""

    def __init__(
        self,
        world: World,
        endpoint: str,
        note: Callable[[str], None],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`endpoint` is of `parse_endpoint`. `note` hears when sending begins to fail, and when it works again."""
        values = os.environ if environment is None else environment
        self._world, self._endpoint, self._note = world, endpoint, note
        self._most_waiting = _number(values, "OTEL_BSP_MAX_QUEUE_SIZE", 2048, note)
        self._most_in_batch = _number(values, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, note)
        self._delay = _number(values, "OTEL_BSP_SCHEDULE_DELAY", 5000, note) / 1000
        service = {} if values.get("OTEL_SERVICE_NAME") else {"service.name": "lastcall"}
        self._resource = Resource.create({"service.version": __version__, **service})
        self._sampler = TracerProvider(resource=self._resource, shutdown_on_exit=False).sampler
        self._answers = _Answers()
        session = self._answers.session(is_loopback_url(endpoint))
        self._exporter: Any = OTLPSpanExporter(endpoint=endpoint, session=session)
        self._export: asyncio.Future[Any] | None = None
        """The last try."""
        self._words = _LastWords()
        _SDK_LOG.handlers, _SDK_LOG.propagate = [self._words], False
        self._queue: deque[list[ReadableSpan]] = deque()
        self._waiting = 0
        self._decisions: dict[SpanId, None] = {}
        self._wake, self._idle, self._woken = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._failing = False
        self._hurry = False
        self._sent = self._failed = self._rejected = self._dropped = 0

    def delivered(self) -> Delivered:
        """Return how many spans were delivered."""
        failed = self._failed + self._rejected
        return {"sent": self._sent - self._rejected, "failed": failed, "dropped": self._dropped,
                "waiting": self._waiting}  # fmt: skip

    def ended(self, ending: Ending) -> None:
        """Queue the trace of a finished story, or drop all of it when there is no room."""
        spans = [each for each in spans_of(ending) if self._is_new(each)]
        if not spans or not self._is_sampled(spans[0]):
            return
        if self._waiting + len(spans) > self._most_waiting:
            if not self._dropped:
                self._note(f"more than {self._most_waiting} spans wait for {self._endpoint}: traces are dropped")
            self._dropped += len(spans)
            return
        self._queue.append([_readable(each, self._resource) for each in spans])
        self._waiting += len(spans)
        self._idle.clear()
        self._wake.set()

    async def run(self) -> None:
        """Send batches until cancelled."""
        while True:
            await self._wake.wait()
            if not self._hurry:
                await self._nap(self._delay)
            batch: list[ReadableSpan] = []
            while self._queue and (not batch or len(batch) + len(self._queue[0]) <= self._most_in_batch):
                batch += self._queue.popleft()
            await self._deliver(batch)
            self._waiting -= len(batch)
            if not self._queue:
                self._wake.clear()
                self._idle.set()

    async def flush(self, seconds: float) -> bool:
        """Send what waits without delay (`run` must be running); False when it took longer than that."""
        self._hurry = True
        self._woken.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()
                return True
        return False

    def close(self) -> None:
        """Break off what is being sent."""
        self._exporter.shutdown()

    # -- one batch ---------------------------------------------------------------------------------------------------

    async def _deliver(self, batch: Sequence[ReadableSpan]) -> None:
        wait = FIRST_WAIT_SECONDS
        for attempt in range(MOST_TRIES):
            if await self._is_delivered(batch):
                self._sent += len(batch)
                self._rejected += min(max(0, self._answers.rejected), len(batch))
                if self._failing:
                    self._failing = False
                    self._note(f"spans reach {self._endpoint} again; {self._dropped} were dropped meanwhile")
                return
            if not self._failing:
                self._failing = True
                why = self._answers.problem or self._words.last or "no answer"
                self._note(f"spans cannot be sent to {self._endpoint}: {why}; up to {self._most_waiting} wait")
            if attempt < MOST_TRIES - 1:
                await self._nap(wait)
                wait = min(wait * 2, MOST_WAIT_SECONDS)
        self._failed += len(batch)

    async def _is_delivered(self, batch: Sequence[ReadableSpan]) -> bool:
        """Try once. A try that hangs is left alone, and until it ends the others fail: there is one thread."""
        if self._export is not None and not self._export.done():
            return False
        self._words.last = self._answers.problem = ""
        self._answers.rejected = 0
        self._export = _in_a_thread(lambda: self._exporter.export(batch))
        done, _ = await asyncio.wait([self._export], timeout=MOST_ANSWER_SECONDS)
        if not done:
            self._answers.problem = f"no whole answer within {MOST_ANSWER_SECONDS:g} s"
        return bool(done) and self._export.result() is SpanExportResult.SUCCESS

    async def _nap(self, seconds: float) -> None:
        """Wait, unless there is a hurry or one comes."""
        self._woken.clear()
        if self._hurry:
            seconds = min(seconds, 0.2)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()

    def _is_new(self, span: Span) -> bool:
        """False for the decision that a Pod before it has sent already."""
        if not span.name.startswith("decision"):
            return True
        if span.id in self._decisions:
            return False
        self._decisions[span.id] = None
        if len(self._decisions) > MOST_DECISIONS:
            del self._decisions[next(iter(self._decisions))]
        return True

    def _is_sampled(self, root: Span) -> bool:
        result = self._sampler.should_sample(
            None, int(root.id.trace, 16), root.name, SpanKind.INTERNAL, dict(root.attributes)
        )
        return result.decision is Decision.RECORD_AND_SAMPLE


class _Answers:
    """What the receiver said of the last request, and how many spans it says it refused of those it took."""

    def __init__(self) -> None:
        self.problem = ""
        self.rejected = 0

    def session(self, loopback: bool) -> requests.Session:
        """Follows no redirect (spans go where the user said), and takes no proxy to reach this machine."""
        session = requests.Session()
        session.trust_env = not loopback
        session.stream = True  # the hook reads the body
        session.hooks["response"].append(self._look)
        return session

    def _look(self, response: requests.Response, **_: Any) -> None:
        if 300 <= response.status_code < 400:
            # The exporter takes this for a success.
            self.problem = f"it answers {response.status_code}, a redirect: use the URL that it redirects to"
            raise requests.exceptions.TooManyRedirects(self.problem)
        body = b""
        for chunk in response.iter_content(1 << 16):
            body += chunk
            if len(body) > MOST_ANSWER_BYTES:
                response.close()
                self.problem = f"its answer has more than {MOST_ANSWER_BYTES >> 20} MiB"
                raise requests.exceptions.ContentDecodingError(self.problem)
        response._content = body  # what `content` answers, which the exporter reads
        if response.status_code >= 400:
            self.problem = f"it answers {response.status_code} {response.reason or ''}".rstrip()
            return
        with suppress(Exception):  # an answer without a protobuf refuses nothing
            self.rejected = ExportTraceServiceResponse.FromString(body).partial_success.rejected_spans


class _LastWords(logging.Handler):
    """Keeps the SDK's last message: it says there why an export failed, and nowhere else."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()[:300]


def _in_a_thread(work: Callable[[], Any]) -> asyncio.Future[Any]:
    """Start `work`; the future gets its result, or the exception that it raised as a result."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def give(result: Any) -> None:
        if not future.done():
            future.set_result(result)

    def call() -> None:
        try:
            result = work()
        except Exception as error:
            result = error
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(give, result)

    threading.Thread(target=call, name="otlp", daemon=True).start()
    return future


def _readable(span: Span, resource: Resource) -> ReadableSpan:
    return ReadableSpan(
        span.name,
        context=_context(span.id),
        parent=_context(span.parent) if span.parent is not None else None,
        resource=resource,
        attributes=dict(span.attributes),
        events=[Event(each.name, dict(each.attributes), each.at_ns) for each in span.events],
        links=[Link(_context(each.to), {"lastcall.cause": each.why}) for each in span.links],
        kind=SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, span.failed) if span.failed else Status(StatusCode.UNSET),
        start_time=span.start_ns,
        end_time=span.end_ns,
        instrumentation_scope=_SCOPE,
    )


def _context(identity: SpanId) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int(identity.trace, 16), int(identity.span, 16), is_remote=False, trace_flags=flags)


def _number(values: Mapping[str, str], name: str, default: int, note: Callable[[str], None]) -> int:
    text = values.get(name, "").strip()
    if text.isascii() and text.isdecimal() and 0 < int(text) < 10**9:
        return int(text)
    if text:
        note(f"{name}={text!r} is not a whole number above 0: {default} is used")
    return default
