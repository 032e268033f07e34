"""Rows with the sites that have sent them."""

import pytest

from stream_engine.state.sited_ports import (
    sited_fragments,
    sited_plan,
    with_site,
    without_site,
)
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    BOUNDS_COLUMNS,
    Distinct,
    Project,
    RemoteSource,
    WindowKind,
    Younger,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import InternalError

SENT = RemoteSource("f1", Schema.of(("k", DataType.TEXT), ("ts", DataType.TIMESTAMP)))
TOLD = RemoteSource("f2", BOUNDS_COLUMNS)
TIMES = Project(SENT, (Column(1, "ts", DataType.TIMESTAMP),), ("ts",))


def test_a_projection_keeps_the_site_behind_its_columns() -> None:
    plan = sited_plan(TIMES)
    assert isinstance(plan, Project)
    assert [e.position for e in plan.expressions if isinstance(e, Column)] == [1, 2]
    assert plan.schema.dtypes == (DataType.TIMESTAMP, DataType.TEXT)


def test_what_mixes_rows_of_sites_has_no_sites() -> None:
    with pytest.raises(InternalError):
        sited_plan(Distinct(SENT))


def test_rows_and_bounds_come_with_sites_and_others_do_not() -> None:
    younger = Younger(TIMES, TOLD, 0, WindowKind.RANGE, 10)
    assert sited_fragments([younger, RemoteSource("f3", SENT.columns)]) == {"f1", "f2"}


def test_equal_rows_of_two_sites_add_up_without_sites() -> None:
    both = {**with_site({("a",): 1}, "g1"), **with_site({("a",): 2}, "g2")}
    assert both == {("a", "g1"): 1, ("a", "g2"): 2}
    assert without_site(both) == {("a",): 3}
