"""Processor time of a batch on its way: made, encoded, decoded, and read in a step."""

from collections.abc import Iterator, Sequence

from deploy.calibration.engine_runs import GATEWAY, EngineRun
from deploy.calibration.rounds import (
    Measurement,
    measurement,
    processor_time,
    without_collections,
)
from deploy.calibration.workloads import SILENT
from stream_engine.site.step_result import Outgoing
from streamsql.errors import InternalError
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.messages import DeltaBatch

BATCHES = 150
"""Of one reading each in a round."""
LARGE = 40
"""Readings in a large batch, whose bytes are then most of its time."""
LARGE_BATCHES = 15


class BatchTimes:
    """Batches of a gateway that ships all rows to a base site, which passes none on.

    State: both sites, and the rounds so far.
    """

    def __init__(self) -> None:
        self._run = EngineRun(SILENT, apart=True)
        self._fixed: list[float] = []
        self._bytes: list[float] = []

    def round(self) -> None:
        """Send small batches, then large ones."""
        small = [self._run.step(events) for events in self._run.next(BATCHES)]
        steps = self._run.next(LARGE * LARGE_BATCHES)
        parts = [steps[k : k + LARGE] for k in range(0, len(steps), LARGE)]
        large = [self._run.step([event for (event,) in part]) for part in parts]
        with without_collections():
            few, payloads = self._coded(small)
            reading = processor_time(lambda: self._read(payloads)) / len(payloads)
            more, larger = self._coded(large)
        self._read(larger)
        size, most = _mean_size(payloads), _mean_size(larger)
        micros = max((more - few) / (most - size), 0.0)
        self._bytes.append(1_000 * micros)
        self._fixed.append(few - micros * size + reading)

    def measurements(self, made: Sequence[float]) -> Iterator[Measurement]:
        """Yield the constants of batches, of the rounds behind the first.

        Args:
            made: Microseconds by round in which the sender makes a batch.
        """
        rounds = list(zip(self._fixed[1:], made, strict=False))
        yield measurement("batch_microseconds", [fixed + own for fixed, own in rounds])
        yield measurement("byte_nanoseconds", self._bytes[1:])

    def _coded(self, sent: list[list[Outgoing]]) -> tuple[float, list[bytes]]:
        """Return the microseconds of a batch to be encoded and decoded, and the payloads."""
        batches = [each.batch for outgoing in sent for each in outgoing]
        if not batches:
            raise InternalError("a workload sends nothing")
        payloads: list[bytes] = []

        def code() -> None:
            for batch in batches:
                payload = encode_packed(batch)
                decode_packed(payload, DeltaBatch)
                payloads.append(payload)

        return processor_time(code) / len(batches), payloads

    def _read(self, payloads: list[bytes]) -> None:
        run = self._run
        for payload in payloads:
            run.base.receive(run.query, GATEWAY, decode_packed(payload, DeltaBatch))
            run.base.step(run.now)


def _mean_size(payloads: list[bytes]) -> float:
    return sum(map(len, payloads)) / len(payloads)
