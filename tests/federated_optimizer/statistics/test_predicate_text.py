"""Predicates are known by their parts, whatever their order."""

from federated_optimizer.statistics.predicate_text import LONGEST, predicate_text
from streamsql.algebra.expressions import Expression
from streamsql.algebra.operators import Filter, walk_plan
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of("CREATE SOURCE heat (room TEXT, celsius DOUBLE);")


def predicate(text: str) -> Expression:
    plan = bound_query(f"SELECT room FROM heat WHERE {text}", CATALOG).plan
    return next(node.predicate for node in walk_plan(plan) if isinstance(node, Filter))


def test_the_order_of_the_parts_does_not_matter() -> None:
    one, two = "room = 'a' AND celsius > 3.0", "celsius > 3.0 AND (room = 'a' AND celsius > 3.0)"
    assert predicate_text(predicate(one)) == predicate_text(predicate(two))
    assert predicate_text(predicate(one)) == "celsius > 3.0 AND room = 'a'"
    assert predicate_text(predicate("celsius > 4.0")) == "celsius > 4.0"


def test_long_texts_stay_apart() -> None:
    texts = {
        predicate_text(predicate(" OR ".join(f"celsius = {n}.5" for n in range(60)) + end))
        for end in ("", " OR room = 'a'", " OR room = 'b'")
    }
    assert len(texts) == 3
    assert all(LONGEST < len(text) < LONGEST + 30 for text in texts)
