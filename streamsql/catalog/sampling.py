"""`WITH (sample = '5 s')`: at most one reading per device and interval of event time.

The same wherever readings enter, a gateway or a local script. Time is divided into intervals of
the given length since 1970; of each device the first reading of an interval is kept, and none of
an interval that is not after the last one kept. Devices are identified by the key, or, where a
source has none, by all its texts.
"""

from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.durations import parse_duration
from streamsql.data.events import SourceEvent
from streamsql.data.types import DataType, Row

MAX_DEVICES = 100_000
"""Max devices of a source; beyond, the one that was silent longest is discarded."""


class Sampler:
    """Chooses the readings of one source that are kept. State: the last interval per device.

    Args:
        interval: Microseconds.
        device: Positions of the columns that name one.
    """

    def __init__(self, interval: int, device: tuple[int, ...]) -> None:
        self._interval = interval
        self._device = device
        self._last: dict[Row, int] = {}

    def keeps(self, event: SourceEvent) -> bool:
        """Whether a reading is kept; withdrawals always are."""
        if event.delete:
            return True
        device = tuple(event.row[position] for position in self._device)
        interval = event.ts // self._interval
        last = self._last.pop(device, None)
        kept = last is None or interval > last
        self._last[device] = interval if last is None or kept else last
        if len(self._last) > MAX_DEVICES:
            del self._last[next(iter(self._last))]
        return kept


def sampler_of(definition: SourceDefinition) -> Sampler | None:
    """Return what samples a source, or None where all readings are kept."""
    text = definition.option("sample")
    if text is None:
        return None
    dtypes = definition.schema.dtypes
    texts = tuple(p for p, dtype in enumerate(dtypes) if dtype == DataType.TEXT)
    return Sampler(parse_duration(text), definition.key or texts)
