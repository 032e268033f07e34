"""The order in which readings of the lake became known."""

import random

from deploy.history.happenings import Readings
from deploy.history.lake_happenings import SKEW, KeptSource
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from tests.deploy.history.kept_rows import KeptRow, RowsInMemory
from tests.deploy.history.past import SECOND, catalog

HOUR = 3_600 * SECOND


def _lake(rows: list[KeptRow]) -> tuple[RowsInMemory, SourceDefinition]:
    definition = catalog().find("noise")
    assert isinstance(definition, SourceDefinition)
    return RowsInMemory({"noise": definition}, {"noise": rows}), definition


def test_readings_come_as_they_arrived_however_they_are_cut() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        rows = []
        for seq in range(200):
            ts = chance.randrange(0, 5 * HOUR)
            late = chance.choice((0, 0, SECOND, HOUR, 3 * HOUR))
            rows.append(KeptRow("gw-1", seq, ts, ts + late, ("a", seq), chance.random() < 0.1))
        lake, definition = _lake(rows)
        found = list(KeptSource(lake, definition, direct=True).readings(HOUR, 6 * HOUR))
        expected = [r for r in rows if r.ts >= HOUR and r.arrived <= 6 * HOUR]
        expected.sort(key=lambda r: (r.arrived, r.seq))
        assert [event for readings in found for event in readings.events] == [
            SourceEvent(r.row, r.ts, delete=r.withdrawn) for r in expected
        ]
        assert [readings.at for readings in found] == sorted({r.arrived for r in expected})


def test_a_gateway_knew_what_it_took_while_it_was_away() -> None:
    rows = [
        KeptRow("gw-1", 1, 1 * HOUR, 1 * HOUR + 5, ("a", 1)),
        KeptRow("gw-1", 2, 2 * HOUR, 4 * HOUR, ("a", 2)),  # held back
        KeptRow("gw-1", 3, 3 * HOUR, 4 * HOUR, ("a", 3)),  # held back
        KeptRow("gw-1", 4, HOUR // 2, 4 * HOUR + 9, ("a", 4)),  # late of itself
        KeptRow("gw-1", 6, 4 * HOUR + 8, 4 * HOUR + 10, ("a", 6)),
        KeptRow("gw-1", 7, 3 * HOUR, 4 * HOUR + 11, ("a", 7)),  # late, taken when it was back
        KeptRow("gw-2", 5, 2 * HOUR, 4 * HOUR, ("b", 5)),  # late, though it was there
    ]
    lake, definition = _lake(rows)
    absences = {"gw-1": [(2 * HOUR - SECOND, 4 * HOUR)]}

    def times(*, direct: bool) -> dict[object, int]:
        found = KeptSource(lake, definition, direct, absences).readings(0, 5 * HOUR)
        return {event.row[1]: readings.at for readings in found for event in readings.events}

    arrived = {1: HOUR + 5, 2: 4 * HOUR, 3: 4 * HOUR, 4: 4 * HOUR + 9, 5: 4 * HOUR}
    arrived |= {6: 4 * HOUR + 10, 7: 4 * HOUR + 11}
    assert times(direct=True) == arrived
    assert times(direct=False) == {**arrived, 2: 2 * HOUR, 3: 3 * HOUR}


def test_readings_of_clocks_that_are_ahead_are_not_lost() -> None:
    ahead = [KeptRow("gw-1", n, n * SECOND + SKEW // 2, n * SECOND, ("a", n)) for n in range(900)]
    lake, definition = _lake(ahead)
    found = list(KeptSource(lake, definition, direct=True).readings(0, HOUR))
    assert [readings.at for readings in found] == [n * SECOND for n in range(900)]
    assert found[0] == Readings(0, "gw-1", "noise", (SourceEvent(("a", 0), SKEW // 2),), True)


def test_the_gateways_of_an_interval_are_those_with_readings_in_it() -> None:
    rows = [KeptRow("gw-1", 1, HOUR, HOUR, ("a", 1)), KeptRow("gw-2", 2, 3 * HOUR, HOUR, ("a", 1))]
    lake, definition = _lake(rows)
    assert KeptSource(lake, definition, direct=True).gateways(0, 2 * HOUR) == {"gw-1"}


def test_what_was_simulated_of_the_past_was_known_when_it_happened() -> None:
    rows = [
        KeptRow("gw-1", 1, HOUR, 9 * HOUR, ("a", 1), epoch=0),
        KeptRow("gw-1", 2, 2 * HOUR, 3 * HOUR, ("a", 2)),
    ]
    lake, definition = _lake(rows)
    for direct in (False, True):
        found = KeptSource(lake, definition, direct).readings(0, 5 * HOUR)
        assert [readings.at for readings in found] == [HOUR, 3 * HOUR]
