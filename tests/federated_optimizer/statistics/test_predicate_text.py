"""Predicates are known by their parts, whatever their order."""

from federated_optimizer.statistics.predicate_text import LONGEST, predicate_text
from streamsql.algebra.operators import Filter, walk_plan
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of("CREATE SOURCE heat (room TEXT, celsius DOUBLE);")


def text_of(where: str, alias: str = "heat") -> str:
    plan = bound_query(f"SELECT {alias}.room FROM heat {alias} WHERE {where}", CATALOG).plan
    node = next(node for node in walk_plan(plan) if isinstance(node, Filter))
    return predicate_text(node.predicate, ("room", "celsius"))


def test_the_order_of_the_parts_does_not_matter() -> None:
    one, two = "room = 'a' AND celsius > 3.0", "celsius > 3.0 AND (room = 'a' AND celsius > 3.0)"
    assert text_of(one) == text_of(two)
    assert text_of(one) == "celsius > 3.0 AND room = 'a'"
    assert text_of("celsius > 4.0") == "celsius > 4.0"


def test_it_does_not_matter_what_a_query_calls_the_source() -> None:
    assert text_of("p.celsius > 3.0", "p") == text_of("celsius > 3.0") == "celsius > 3.0"


def test_long_texts_stay_apart() -> None:
    texts = {
        text_of(" OR ".join(f"celsius = {n}.5" for n in range(60)) + end)
        for end in ("", " OR room = 'a'", " OR room = 'b'")
    }
    assert len(texts) == 3
    assert all(LONGEST < len(text) < LONGEST + 30 for text in texts)
