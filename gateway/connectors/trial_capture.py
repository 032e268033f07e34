"""Payloads of a trial, within bounds: some of each topic."""

import asyncio
from collections import Counter
from collections.abc import Mapping

from gateway.connectors.declared_source import MappedRows
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Value
from streamsql.errors import WireError
from streamsql.mapping.mapper import Mapped
from streamsql.mapping.offers import MAX_RECORDS, MAX_VALUES, OfferedRecord, within_bounds
from streamsql.wire.codec import encode_json
from streamsql.wire.trial_messages import (
    MAX_BYTES,
    MAX_PAYLOADS,
    MAX_SHOWN,
    MAX_WHOLE_BYTES,
    SourceTrial,
    TrialSample,
)

PER_TOPIC = 10
MAX_TOPICS = 10_000
MAX_ROWS = 20
"""Of a payload."""
MAX_FACTS = 100
MAX_TEXT = 1_000
REPORT_BYTES = 500_000
REPORT_VALUES = 500
"""Offered values of a report."""


class Capture:
    """Payloads that wait to be reported.

    Attributes:
        is_whole: Whether the trial wants payloads uncut, to read what devices announce.
        full: Set when no more are wanted.
        dropped: How many were not captured.
    """

    def __init__(self, trial: SourceTrial) -> None:
        self.is_whole = trial.whole
        self._shown = MAX_WHOLE_BYTES if trial.whole else MAX_SHOWN
        self._bytes = MAX_WHOLE_BYTES if trial.whole else MAX_BYTES
        self._payloads = trial.payloads if trial.whole else min(trial.payloads, MAX_PAYLOADS)
        self._of_topic: Counter[str] = Counter()
        self._samples: list[TrialSample] = []
        self._offers: list[OfferedRecord] = []
        self._values = MAX_VALUES
        self.full = asyncio.Event()
        self.dropped = 0

    @property
    def waiting(self) -> bool:
        """Whether something is to be reported."""
        return bool(self._samples or self._offers)

    def wants(self, topic: str) -> bool:
        """Whether another payload of a topic is to be captured."""
        if self.full.is_set() or len(self._of_topic) >= MAX_TOPICS:
            self.dropped += 1
            return False
        self._of_topic[topic] += 1
        # Without topics payloads come from one device, and all are wanted.
        if topic and self._of_topic[topic] > PER_TOPIC:
            self.dropped += 1
            return False
        return True

    def add(
        self,
        definition: SourceDefinition,
        payload: bytes | Mapping[str, object],
        facts: Mapping[str, Value],
        arrival: int,
        mapped: MappedRows,
    ) -> None:
        """Keep a payload, or the values of a record, and what became of it."""
        content = payload if isinstance(payload, bytes) else _record(payload)
        names = definition.schema.names
        sample = TrialSample(
            arrival,
            definition.name,
            content[: self._shown],
            len(content),
            is_record=not isinstance(payload, bytes),
            facts={name: _short(facts[name]) for name in list(facts)[:MAX_FACTS]},
            rows=tuple(
                tuple(_short(row[name]) for name in names) for row in mapped.rows[:MAX_ROWS]
            ),
            problems=tuple(text[:MAX_TEXT] for text in mapped.problems),
            ignored=mapped.ignored,
        )
        self._payloads -= 1
        self._bytes -= len(sample.payload)
        if self._bytes < 0:
            self.dropped += 1
        else:
            self._samples.append(sample)
        if self._payloads <= 0 or self._bytes <= 0:
            self.full.set()

    def offer(self, definition: SourceDefinition, record: OfferedRecord, arrival: int) -> None:
        """Keep a record that the device offers, also as a sample of what could be read."""
        offered = within_bounds(record, self._values)
        if not offered.values or self.full.is_set():
            self.dropped += 1
            return
        self._values -= len(offered.values)
        self._offers.append(offered)
        facts: dict[str, Value] = {}
        values: dict[str, object] = {}
        for value in offered.values:
            if value.address.startswith("@"):
                facts[value.address[1:]] = value.sample
            else:
                values[value.address] = value.sample
        self.add(definition, values, facts, arrival, Mapped([], []))
        if self._values <= 0:
            self.full.set()

    def offered(self) -> tuple[OfferedRecord, ...]:
        """Return the next records to report, as many as fit into a message."""
        size = taken = 0
        for record in self._offers[:MAX_RECORDS]:
            size += len(record.values)
            if taken and size > REPORT_VALUES:
                break
            taken += 1
        offers, self._offers = self._offers[:taken], self._offers[taken:]
        return tuple(offers)

    def taken(self) -> tuple[TrialSample, ...]:
        """Return the next samples to report, as many as fit into a message."""
        size = taken = 0
        for sample in self._samples:
            size += len(sample.payload) + 500
            if taken and size > REPORT_BYTES:
                break
            taken += 1
        samples, self._samples = self._samples[:taken], self._samples[taken:]
        return tuple(samples)


def _short(value: Value) -> Value:
    return value[:MAX_TEXT] if isinstance(value, str) else value


def _record(values: Mapping[str, object]) -> bytes:
    """Return values by address as JSON; what JSON cannot hold is a text."""
    try:
        return encode_json(dict(values))
    except WireError:
        return encode_json({name: str(value)[:MAX_TEXT] for name, value in values.items()})
