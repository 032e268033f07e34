"""Sampling keeps at most one reading per device and interval, whatever comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.binder import define
from streamsql.catalog import sampling
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.sampling import Sampler, sampler_of
from streamsql.data.events import SourceEvent
from streamsql.errors import BindingError
from streamsql.syntax import CreateSource, parse_statement


def source(text: str) -> SourceDefinition:
    statement = parse_statement(text)
    assert isinstance(statement, CreateSource)
    definition = define(statement, Catalog())
    assert isinstance(definition, SourceDefinition)
    return definition


def test_devices_are_told_apart_by_the_key_or_by_texts() -> None:
    columns = "desk TEXT, room TEXT, weight DOUBLE, ts TIMESTAMP"
    keyed = sampler_of(source(f"CREATE SOURCE s ({columns}, KEY (desk)) WITH (sample = '5 s')"))
    bag = sampler_of(source(f"CREATE SOURCE s ({columns}) WITH (sample = '5 s')"))
    assert keyed is not None
    assert bag is not None
    first = SourceEvent(("d1", "a", 1.0, 0), 0)
    moved = SourceEvent(("d1", "b", 2.0, 1), 1)
    assert (keyed.keeps(first), keyed.keeps(moved)) == (True, False)
    assert (bag.keeps(first), bag.keeps(moved)) == (True, True)
    assert sampler_of(source(f"CREATE SOURCE s ({columns})")) is None


def test_withdrawals_are_never_left_out() -> None:
    sampler = Sampler(10, (0,))
    assert sampler.keeps(SourceEvent(("a",), 0))
    assert sampler.keeps(SourceEvent(("a",), 1, delete=True))


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MAX_DEVICES", 3)
    sampler = Sampler(10, (0,))
    for name in "abcd":
        assert sampler.keeps(SourceEvent((name,), 0))
    assert not sampler.keeps(SourceEvent(("d",), 1))
    assert sampler.keeps(SourceEvent(("a",), 1))  # forgotten, as it was silent longest


READINGS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), max_size=30)


@given(READINGS)
def test_at_most_one_per_interval_and_the_first_of_a_new_one(
    readings: list[tuple[str, int]],
) -> None:
    sampler = Sampler(10, (0,))
    kept = [(name, ts) for name, ts in readings if sampler.keeps(SourceEvent((name,), ts))]
    intervals = [(name, ts // 10) for name, ts in kept]
    assert len(set(intervals)) == len(intervals)
    for name in "ab":
        newest, expected = -1, []
        for _, ts in (r for r in readings if r[0] == name):
            if ts // 10 > newest:
                newest = ts // 10
                expected.append((name, ts))
        assert [k for k in kept if k[0] == name] == expected


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("sample = 'often'", "often"),
        ("sample = '0 s'", "longer than 0"),
    ],
)
def test_wrong_options_are_refused(options: str, found: str) -> None:
    with pytest.raises(BindingError, match=found) as refusal:
        source(f"CREATE SOURCE s (k TEXT) WITH ({options})")
    assert refusal.value.code == "bad_option"


def test_a_sampled_source_has_devices() -> None:
    with pytest.raises(
        BindingError, match="sample keeps one reading per device, but no column names a"
    ):
        source("CREATE SOURCE s (v DOUBLE) WITH (sample = '5 s')")
    with pytest.raises(BindingError, match="this is a table"):
        source("CREATE TABLE t (k TEXT) WITH (topic = 'x')")
