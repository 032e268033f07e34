"""Filters over rows of other runs go where all of these pass them."""

from federated_optimizer.sharing.forms.leaf_facts import facts_of, without_known
from streamsql.algebra.expressions import Call, Column, Literal, conjuncts
from streamsql.algebra.operators import Filter, RemoteSource
from streamsql.data.types import DataType
from tests.federated_optimizer.sharing.small_shop import normalized

NODE = normalized("SELECT a.x, a.y, b.y AS z FROM t a, u b WHERE a.x = b.x AND a.y > 3 AND b.y > 0")
LEAF = RemoteSource("@q1/f0", NODE.schema)


def greater(column: int, than: int) -> Call:
    field = NODE.schema.fields[column]
    sides = Column(column, field.name, field.dtype), Literal(than, DataType.INTEGER)
    return Call(">", sides, DataType.BOOLEAN)


def test_facts_are_about_the_columns_that_are_shown() -> None:
    assert len(facts_of(NODE)) == 2


def test_what_all_rows_pass_is_left_out() -> None:
    both = Call("AND", (greater(1, 2), greater(2, 5)), DataType.BOOLEAN)
    kept = without_known(Filter(LEAF, both), {"@q1/f0": NODE})
    assert isinstance(kept, Filter)
    assert conjuncts(kept.predicate) == [greater(2, 5)]
    assert without_known(Filter(LEAF, greater(1, 3)), {"@q1/f0": NODE}) == LEAF


def test_what_some_rows_do_not_pass_stays() -> None:
    plan = Filter(LEAF, greater(1, 4))
    assert without_known(plan, {"@q1/f0": NODE}) == plan
    assert without_known(plan, {}) == plan
