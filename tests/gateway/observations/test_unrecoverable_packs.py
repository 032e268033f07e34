"""Packs that do not count: how their loss is told."""

import pytest

from gateway.observations.unrecoverable_packs import redefined
from gateway.testing import SECOND, TEMPERATURES
from streamsql.errors import WireError
from streamsql.wire.messages import ObservationPack, SenmlRecord
from streamsql.wire.senml import records_of


def test_the_loss_of_a_redefined_pack_has_its_times() -> None:
    records = [
        record
        for at in (5, 3)
        for record in records_of("t1", at * SECOND, ("t1", 20.5, at * SECOND), TEMPERATURES.schema)
    ]
    lost = redefined("gw-1", "temperature", ObservationPack(1, 0, tuple(records)), 9 * SECOND)
    assert (lost.since, lost.newest) == (3 * SECOND, 5 * SECOND)


@pytest.mark.parametrize("seconds", [1e300, 1e13])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    pack = ObservationPack(1, 0, (SenmlRecord(bt=seconds, n="x", v=1.0),))
    with pytest.raises(WireError, match="observations of temperature"):
        redefined("gw-1", "temperature", pack, 9 * SECOND)
