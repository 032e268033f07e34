"""WITH (plan = n)."""

import pytest

from streamsql.errors import BindingError
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of("CREATE SOURCE r (k TEXT, v INTEGER);")


@pytest.mark.parametrize(
    ("option", "asked"), [("3", 3), ("'3'", 3), ("'auto'", 0), ("999999999999999", 10**15 - 1)]
)
def test_a_query_asks_for_a_plan_by_its_number(option: str, asked: int) -> None:
    bound = bound_query(f"SELECT k FROM r WITH (plan = {option})", CATALOG)
    assert bound.asked == asked
    assert bound.warnings == bound_query("SELECT k FROM r", CATALOG).warnings
    assert bound_query("SELECT k FROM r WITH (backfill = 'no')", CATALOG).asked == 0


@pytest.mark.parametrize("option", ["0", "-1", "'first'", "1.5", "9999999999999999"])
def test_other_values_are_refused(option: str) -> None:
    with pytest.raises(BindingError, match="a plan is a whole number from 1"):
        bound_query(f"SELECT k FROM r WITH (plan = {option})", CATALOG)
