"""What a statement makes of the payloads of a trial, replayed as a gateway would read them."""

import pytest

from federated_optimizer.coordinator.contract.trial_model import MappedSample
from federated_optimizer.coordinator.trials.tried_sources import (
    listening_for_births,
    mapped_samples,
)
from streamsql.errors import BindingError
from streamsql.mapping.mapper import Mapper
from streamsql.wire.bounds import RowValue
from streamsql.wire.trial_messages import TrialSample
from tests.streamsql.mapping.sparkplug.written import NOON, alias, level, temp, written

PRESS = """
CREATE SOURCE press (device TEXT, temp DOUBLE FROM 'Temp', level INTEGER FROM 'Level', ts TIMESTAMP,
KEY (device)) WITH (connector = 'mqtt', endpoint = 'home', format = 'sparkplug')
"""


def sample(place: str, payload: bytes, arrival: int = NOON * 1_000) -> TrialSample:
    facts: dict[str, RowValue] = {"topic": f"spBv1.0/{place}"}
    return TrialSample(arrival, "listening", payload, len(payload), facts=facts)


def test_data_of_sparkplug_refers_to_births_before_it() -> None:
    early, *others = mapped_samples(
        PRESS,
        [
            sample("g/DDATA/n/d", written(alias(1, double_value=1), seq=7)),
            sample("g/NBIRTH/n", written(seq=0)),
            sample("g/DBIRTH/n/d", written(temp(20.0), level(-2), seq=1)),
            sample("g/DDATA/n/d", written(alias(1, double_value=21), seq=2, ms=NOON + 5)),
            sample("g/DDATA/n/d", b"\xff", NOON),
            sample("a/b", b"x"),
        ],
    ).samples
    assert early == MappedSample((), ("its birth was not received: the gateway asks for it",))
    assert others == [
        MappedSample((), ignored=True),
        MappedSample((("d", 20.0, -2, NOON * 1_000),)),
        MappedSample((("d", 21.0, -2, (NOON + 5) * 1_000),)),
        MappedSample((), ("it is no Sparkplug payload: it ends too early",)),
        MappedSample((), ignored=True),
    ]


def test_who_listens_for_births_ignores_data() -> None:
    mapper = Mapper(listening_for_births("mqtt", "home"))
    births = [mapper.map_record({}, {"topic": "t", "birth": birth}, 1) for birth in (True, False)]
    assert [(len(mapped.rows), mapped.ignored) for mapped in births] == [(1, False), (0, True)]


def test_only_sources_with_a_connector_can_be_tried() -> None:
    with pytest.raises(BindingError, match="has no connector"):
        mapped_samples("CREATE SOURCE s (a TEXT)", [])
