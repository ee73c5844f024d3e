"""What is counted, for Prometheus. No label takes a value from outside, so their number stays small."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from assent.server.reply import Reading
from assent.server.wire import IgnoredResult

CONTENT_TYPE = CONTENT_TYPE_LATEST

# From a local answer without a model to a large model on a small machine.
SECONDS = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "assent_requests", "Requests answered", ["route", "method", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "assent_request_seconds", "From the headers to the end of the answer", ["route"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self._asking = Histogram(
            "assent_upstream_seconds", "Time spent in the model's server", buckets=SECONDS, registry=self.registry
        )
        self._streams = Gauge("assent_streams", "Streams being sent", registry=self.registry)
        self._asked = Counter("assent_replies", "What the model's replies were", ["kind"], registry=self.registry)
        self._ignored = Counter(
            "assent_ignored_tool_results", "Results that answered no pending request", ["reason"],
            registry=self.registry,
        )  # fmt: skip
        self._tokens = Counter(
            "assent_tokens", "Tokens as the model's server counts them", ["kind"], registry=self.registry
        )

        # Looking up a labelled counter costs more than counting, so the few that there are stay at hand.
        self._at_hand: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._kinds = {kind: self._asked.labels(kind) for kind in ("tool_request", "near_miss", "script", "text")}
        self._spent = {kind: self._tokens.labels(kind) for kind in ("prompt", "completion")}

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request has been answered."""
        key = (route, method, status)
        counters = self._at_hand.get(key)
        if counters is None:
            counters = self._at_hand[key] = (
                self._requests.labels(route, method, str(status)),
                self._seconds.labels(route),
            )
        counters[0].inc()
        counters[1].observe(seconds)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While the model's server works."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._asking.observe(time.perf_counter() - start)

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """While a stream is being sent."""
        self._streams.inc()
        try:
            with self.asking():
                yield
        finally:
            self._streams.dec()

    def count_reading(self, reading: Reading, ignored: list[IgnoredResult]) -> None:
        """A turn is complete."""
        kind = (
            "tool_request" if reading.requests
            else "near_miss" if reading.error
            else "script" if reading.script
            else "text"
        )  # fmt: skip
        self._kinds[kind].inc()
        for entry in ignored:
            self._ignored.labels(entry.reason).inc()

    def count_tokens(self, usage: dict[str, Any] | None) -> None:
        """What a turn cost, if the model's server says so."""
        for kind in self._spent:
            count = (usage or {}).get(f"{kind}_tokens")
            if type(count) is int and count > 0:
                self._spent[kind].inc(count)

    def exposition(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)
