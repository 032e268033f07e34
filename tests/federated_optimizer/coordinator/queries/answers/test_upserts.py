"""Changes by key: the upserts add up to the relation, and a key that is not unique is said so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer.coordinator.contract.coordinator_model import Change
from federated_optimizer.coordinator.queries.answers.upserts import (
    KeyNotUniqueError,
    UpsertEnvelope,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row

SCHEMA = Schema.of(("k", DataType.TEXT), ("v", DataType.INTEGER))


def change(diff: int, *row: object) -> Change:
    return Change(7, diff, row)  # type: ignore[arg-type]


def test_a_replaced_row_is_one_upsert_and_a_deleted_one_a_delete() -> None:
    envelope = UpsertEnvelope(SCHEMA, (0,))
    first = envelope.take([change(1, "a", 1), change(1, "b", 1)], snapshot=True)
    assert [(u.key, u.row) for u in first] == [(("a",), ("a", 1)), (("b",), ("b", 1))]
    (one,) = envelope.take([change(-1, "a", 1), change(1, "a", 2)])
    assert (one.key, one.row, one.ts) == (("a",), ("a", 2), 7)
    (gone,) = envelope.take([change(-1, "b", 1)])
    assert (gone.key, gone.row) == (("b",), None)


def test_a_new_row_before_the_old_one_is_gone_is_held_back() -> None:
    envelope = UpsertEnvelope(SCHEMA, (0,))
    envelope.take([change(1, "a", 1)], snapshot=True)
    assert envelope.take([change(1, "a", 2)]) == []
    assert envelope.is_doubtful
    (one,) = envelope.take([change(-1, "a", 1)])
    assert one.row == ("a", 2)
    envelope.check()


def test_a_key_with_two_rows_is_refused_with_the_rows() -> None:
    envelope = UpsertEnvelope(SCHEMA, (0,))
    envelope.take([change(1, "a", 2), change(1, "a", 1)])
    with pytest.raises(
        KeyNotUniqueError, match=r"k = a has 2 rows, \(a, 1\) and \(a, 2\)"
    ) as found:
        envelope.check()
    assert found.value.code == "key_not_unique"
    assert found.value.hint
    envelope = UpsertEnvelope(SCHEMA, (0,))
    envelope.take([change(2, "a", 1)])
    with pytest.raises(KeyNotUniqueError):
        envelope.check()


STEPS = st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 2)), max_size=8)


@given(STEPS, st.booleans())
def test_upserts_add_up_to_the_relation(steps: list[dict[str, int]], split: bool) -> None:
    envelope = UpsertEnvelope(SCHEMA, (0,))
    before: dict[str, int] = {}
    told: dict[Row, Row] = {}
    for relation in steps:
        gone = [change(-1, *r) for r in before.items() if r not in relation.items()]
        new = [change(1, *r) for r in relation.items() if r not in before.items()]
        parts = [[c] for c in (*new, *gone)] if split else [[*new, *gone]]
        for part in parts:
            for upsert in envelope.take(part):
                if upsert.row is None:
                    del told[upsert.key]
                else:
                    told[upsert.key] = upsert.row
        envelope.check()
        assert set(told.values()) == set(relation.items())
        before = relation
