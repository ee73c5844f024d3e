"""What is counted and what is logged of every request. No label and no log line takes a value from outside.

Counting is plain addition, on the one thread that the app runs on; the families that Prometheus knows are made when
somebody asks for them. Its own counters lock and look up on every step, and a turn counts a dozen things.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from lastword.server.api_types import IgnoredResult, Refusal

if TYPE_CHECKING:
    from lastword.server.reply import Reading

OWN_CODES = frozenset(
    {
        "upstream_busy", "upstream_key", "upstream_refused", "upstream_slow", "upstream_failed", "upstream_died",
        "upstream_garbage", "upstream_too_large", "upstream_unreachable", "no_model",
        "client_gone", "server_stopping", "turn_running", "internal_error",
    }
)  # fmt: skip
"""What may stand in a label. A code of the model's server may be anything."""

# From a local answer without a model to a large model on a small machine.
SECONDS = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics(Collector):
    """The counters of one server."""

    CONTENT_TYPE = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, str]] = Counter()
        """By route, method and status."""
        self._seconds: dict[str, Times] = {}
        self._asking = Times()
        self._streams = 0
        self._replies = Counter({("tool_request",): 0, ("near_miss",): 0, ("script",): 0, ("text",): 0})
        self._ignored: Counter[tuple[str]] = Counter()
        self._tokens = Counter({("prompt",): 0, ("completion",): 0})
        self._broken: Counter[tuple[str]] = Counter()
        self._failures: Counter[tuple[str]] = Counter()
        self.count_retries: Callable[[], int] = lambda: 0
        """How many further attempts there were at the model's server, as its client counts them."""

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request has been answered."""
        self._requests[route, method, str(status)] += 1
        times = self._seconds.get(route)
        if times is None:
            times = self._seconds[route] = Times()
        times.add(seconds)

    def count_asking(self, seconds: float) -> None:
        """The model's server has worked this long."""
        self._asking.add(seconds)

    def count_broken(self, code: str) -> None:
        """A stream ended before its answer did. Its status says 200, since that was sent before."""
        self._broken[code if code in OWN_CODES else "other",] += 1

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Count a turn that the model's server made fail."""
        try:
            yield
        except Refusal as refusal:
            if refusal.is_upstream:
                self._failures[refusal.code if refusal.code in OWN_CODES else "upstream_refused",] += 1
            raise

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """While a stream is being sent."""
        start = time.perf_counter()
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1
            self._asking.add(time.perf_counter() - start)

    def count_reading(self, reading: Reading, ignored: list[IgnoredResult]) -> None:
        """A turn is complete."""
        kind = (
            "tool_request" if reading.requests
            else "near_miss" if reading.error
            else "script" if reading.script
            else "text"
        )  # fmt: skip
        self._replies[kind,] += 1
        for entry in ignored:
            self._ignored[entry.reason,] += 1

    def count_tokens(self, usage: dict[str, Any] | None) -> None:
        """What a turn cost, if the model's server says so."""
        if usage is None:
            return
        for kind in ("prompt", "completion"):
            count = usage.get(f"{kind}_tokens")
            if type(count) is int and count > 0:
                self._tokens[kind,] += count

    def exposition(self) -> bytes:
        """All of it, as Prometheus reads it."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterable[Metric]:
        """The families, as they are now."""
        yield _counter("lastword_requests", "Requests answered", ["route", "method", "status"], self._requests)
        seconds = HistogramMetricFamily(
            "lastword_request_seconds", "From the headers to the end of the answer", labels=["route"]
        )
        for route, times in self._seconds.items():
            seconds.add_metric([route], times.buckets(), times.total)
        yield seconds
        asking = HistogramMetricFamily("lastword_upstream_seconds", "Time spent in the model's server")
        asking.add_metric([], self._asking.buckets(), self._asking.total)
        yield asking
        yield GaugeMetricFamily("lastword_streams", "Streams being sent", self._streams)
        yield _counter("lastword_broken_streams", "Streams that ended before their answer", ["reason"], self._broken)
        yield _counter(
            "lastword_upstream_failures", "Turns that failed at the model's server", ["reason"], self._failures
        )
        yield CounterMetricFamily(
            "lastword_upstream_retries", "Further attempts at the model's server", self.count_retries()
        )
        yield _counter("lastword_replies", "What the model's replies were", ["kind"], self._replies)
        yield _counter(
            "lastword_ignored_tool_results", "Results that answered no pending request", ["reason"], self._ignored
        )
        yield _counter("lastword_tokens", "Tokens as the model's server counts them", ["kind"], self._tokens)


class Times:
    """How many took how long."""

    def __init__(self) -> None:
        self._counts = [0] * (len(SECONDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self._counts[bisect_left(SECONDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """How many took at most so long, for each bound."""
        bounds = [*(str(float(bound)) for bound in SECONDS), "+Inf"]
        return list(zip(bounds, accumulate(self._counts), strict=True))


def _counter(name: str, words: str, labels: list[str], counts: Counter[Any]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, words, labels=labels)
    for values, count in counts.items():
        family.add_metric(values, count)
    return family


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """What the log says of a request. It knows routes and never paths, headers or bodies, so it has no secrets."""

    method: str
    route: str
    status: int
    milliseconds: float
    caller: str | None
    request: str
    problem: str | None
    event: Literal["request"] = "request"
    at: datetime

    def __str__(self) -> str:
        """One JSON object on a line."""
        return _encode(self).decode() + "\n"


_encode = msgspec.json.Encoder().encode


class Gathered:
    """Writes the lines of one iteration of the event loop together. Every write releases the interpreter lock, and
    waiting to get it back cost more under load than all else that the log does."""

    def __init__(self, write: Callable[[str], Any]) -> None:
        self._write = write
        self._lines: list[str] = []

    def write(self, line: str) -> None:
        """Take a line, to be written in the next iteration of the loop."""
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._flush)
        self._lines.append(line)

    def _flush(self) -> None:
        lines = "".join(self._lines)
        self._lines.clear()
        self._write(lines)
