"""Processor time of a batch on its way: made, encoded, decoded, and read in a step."""

from collections.abc import Iterator, Sequence
from functools import partial

from deploy.calibration.engine_runs import GATEWAY, EngineRun
from deploy.calibration.rounds import (
    Measurement,
    beyond,
    measurement,
    processor_time,
    without_collections,
)
from deploy.calibration.workloads import SILENT
from streamsql.data.events import SourceEvent
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.messages import DeltaBatch

BATCHES = 150
"""Of one reading each in a round."""
MORE = 8
"""Readings in a larger batch. It has the short form of small ones, as nearly all batches that sites
send while they run; of more than 32 rows, in another form, a byte takes a tenth."""
MORE_BATCHES = 40


class BatchTimes:
    """Batches of a gateway that ships all rows to a base site, which passes none on.

    Each goes all its way before the next one is made, as at sites: what a processor still has in
    its caches then is what it has there.

    State: both sites, and the rounds so far.
    """

    def __init__(self) -> None:
        self._run = EngineRun(SILENT, apart=True)
        self._whole: list[float] = []
        self._coded: list[tuple[float, float]] = []
        self._bytes: list[float] = []

    def round(self) -> None:
        """Send small batches, then larger ones."""
        steps, small = self._run.next(BATCHES), self._run.next(BATCHES)
        large = self._run.next(MORE * MORE_BATCHES)
        parts = [[event for (event,) in large[k : k + MORE]] for k in range(0, len(large), MORE)]
        with without_collections():
            took = processor_time(partial(self._send, steps))
            few, size = self._code(small)
            more, larger = self._code(parts)
        self._whole.append(took / BATCHES)
        micros = max((more - few) / (larger - size), 0.0)
        self._bytes.append(1_000 * micros)
        self._coded.append((micros, size))

    def measurements(self, silent: Sequence[float]) -> Iterator[Measurement]:
        """Yield the constants of batches, of the rounds behind the first.

        Args:
            silent: Microseconds by round of a step at a gateway that sends nothing.
        """
        whole = beyond(self._whole[1:], silent)
        sizes = [micros * size for micros, size in self._coded[1:]]
        fixed = [each - coded for each, coded in zip(whole, sizes, strict=True)]
        yield measurement("batch_microseconds", fixed)
        yield measurement("byte_nanoseconds", self._bytes[1:])

    def _send(self, steps: list[list[SourceEvent]]) -> None:
        run = self._run
        for events in steps:
            for sent in run.step(events):
                payload = encode_packed(sent.batch)
                run.base.receive(run.query, GATEWAY, decode_packed(payload, DeltaBatch))
                run.base.step(run.now)

    def _code(self, steps: list[list[SourceEvent]]) -> tuple[float, float]:
        """Return the microseconds of a batch to be encoded and decoded, and its bytes."""
        batches = [sent.batch for events in steps for sent in self._run.step(events)]
        payloads: list[bytes] = []

        def code() -> None:
            for batch in batches:
                payload = encode_packed(batch)
                decode_packed(payload, DeltaBatch)
                payloads.append(payload)

        took = processor_time(code)
        for payload in payloads:
            batch = decode_packed(payload, DeltaBatch)
            self._run.base.receive(self._run.query, GATEWAY, batch)
            self._run.base.step(self._run.now)
        return took / len(batches), sum(map(len, payloads)) / len(payloads)
