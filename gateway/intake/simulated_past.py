"""Publishes what simulated devices would have read in the past, on the history lane.

Packs have epoch 0, which no life of a gateway has, and the numbers that the simulation gives them:
asked for again they are known in the lake and count once. They go neither through the engine nor
through the buffer on disk: whoever wants them asks again.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from gateway.connectors.reading import PastPack
from gateway.intake.observations import ObservationLane
from gateway.intake.validation import EventMaker
from host.clocks import Clock
from host.mqtt import MessagingError, PublishTicket
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Value
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import ObservationPack
from streamsql.wire.past_packs import HOUR, MAX_HOURS, PAST_EPOCH, SHORTEST_EVERY
from streamsql.wire.senml import records_of_rows

PENDING = 20
"""Packs that may wait for their acknowledgement: live readings queue behind them."""
ACKNOWLEDGED_SECONDS = 10.0

Answer = dict[str, Value]


class Past(Protocol):
    """Sources as far as their past is asked for."""

    def past(self, hour: int, every: int) -> Iterator[PastPack]:
        """Yield the packs of an hour; raises ValueError where nothing is simulated."""


async def publish_past(
    past: Past,
    lane: ObservationLane,
    definitions: Callable[[], Mapping[str, SourceDefinition]],
    clock: Clock,
    arguments: Mapping[str, Value],
) -> Answer:
    """Publish the readings of some hours; return what there was.

    Args:
        past: Knows the readings.
        lane: Of the gateway.
        definitions: Returns its sources by name.
        clock: Hours that are not over by it have no past.
        arguments: `first` and `hours`, since 1970; `every`, in microseconds.
    """
    first, hours, every = (_whole(arguments.get(name)) for name in ("first", "hours", "every"))
    if not 0 < hours <= MAX_HOURS or not SHORTEST_EVERY <= every <= HOUR:
        return _refusal("these hours or this interval are out of range")
    if not first >= 0 or first + hours > clock() // HOUR:
        return _refusal("the past ends with the last full hour")
    readings = 0
    sent: deque[PublishTicket] = deque()
    try:
        for hour in range(first, first + hours):
            for pack in past.past(hour, every):
                if not pack.readings or not lane.is_read(pack.source):
                    continue
                definition = definitions().get(pack.source)
                if definition is not None:
                    await asyncio.sleep(0)  # others have their turn
                    if len(sent) >= PENDING:
                        await sent.popleft().wait(ACKNOWLEDGED_SECONDS)
                    sent.append(_publish(pack, definition, lane, clock()))
                    readings += len(pack.readings)
        for ticket in sent:
            await ticket.wait(ACKNOWLEDGED_SECONDS)
    except TimeoutError:
        return _refusal(f"the broker acknowledged nothing for {ACKNOWLEDGED_SECONDS:g} s")
    except (ValueError, MessagingError) as error:
        return _refusal(str(error))
    return {"done": True, "message": "", "readings": readings}


def _publish(
    pack: PastPack, definition: SourceDefinition, lane: ObservationLane, now: int
) -> PublishTicket:
    make = EventMaker(definition).event
    events = [(reading.sensor, make(reading, now)) for reading in pack.readings]
    rows = [(sensor or lane.gateway, event.ts, event.row) for sensor, event in events]
    version, layout = lane.stamps.get(pack.source, (0, 0))
    made = ObservationPack(
        PAST_EPOCH,
        pack.number,
        tuple(records_of_rows(rows, definition.schema)),
        version=version,
        layout=layout,
    )
    return lane.client.publish(lane.topics.history(lane.gateway, pack.source), encode_json(made))


def _whole(value: Value) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _refusal(message: str) -> Answer:
    return {"done": False, "message": message}
