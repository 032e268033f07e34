"""Relations of a run: what its parts let through, by what they group, and what they join."""

from collections import Counter

from federated_optimizer.canonical.sets.index_rows import index_of_rows
from federated_optimizer.sharing.forms.blocks import block_of
from federated_optimizer.sharing.forms.residuals import predicate_set
from federated_optimizer.sharing.part_relations import PartRelations, part_relations
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from tests.federated_optimizer.sharing.small_shop import TEXTS, normalized


def relations(text: str, run: str = "q7") -> PartRelations:
    plan = normalized(text)
    fragment = Fragment("f0", Engine.BASE, plan, ("base",))
    return part_relations(FragmentBundle(run, 1, (fragment,), plan.schema, text), plan)


def shape(found: PartRelations) -> PartRelations:
    """Return relations with another name of the run's own part."""
    return found._replace(
        conditions=found.conditions._replace(
            predicate_sets=[("", d) for p, d in found.conditions.predicate_sets if p[0] == "q"]
        ),
        group_keys=[("", key) for part, key in found.group_keys if part.startswith("q")],
        inputs=[("", name) for part, name in found.inputs if part.startswith("q")],
    )


def test_conditions_say_what_a_part_lets_through() -> None:
    text = "SELECT x FROM t WHERE y > 1 AND (s = 'a' OR d < 0.5)"
    found = relations(text)
    said = {(term, values) for _, term, values, _ in found.conditions.literals}
    assert said == {("#1", ">= 2"), ("#2", "< 0.5"), ("#3", "= 'a'")}
    sizes = Counter(name for name, _ in found.conditions.disjunctions)
    assert sorted(sizes.values()) == [1, 2]
    assert found.inputs == [("q7/f0", "t")]
    read = index_of_rows(found.conditions)
    assert read["q7/f0"] == predicate_set(block_of(normalized(text)).predicates)


def test_neither_order_nor_spelling_counts() -> None:
    for one, other in (
        (
            "SELECT a.s FROM t a, u b WHERE a.x = b.x AND a.y > 3",
            "SELECT a.s FROM u b, t a WHERE NOT (a.y <= 3) AND b.x = a.x",
        ),
        (
            "SELECT x, y + 1 AS k, COUNT(*) AS n FROM t WHERE y > 3 GROUP BY x, y + 1",
            "SELECT 1 + y AS k, x, COUNT(*) AS n FROM t WHERE 3 < y GROUP BY 1 + y, x",
        ),
    ):
        assert shape(relations(one)) == shape(relations(other, "q12"))


def test_groups_and_what_is_joined_are_inputs() -> None:
    groups = relations("SELECT x, y + 1 AS k, COUNT(*) AS n FROM t GROUP BY x, y + 1")
    assert {key for part, key in groups.group_keys if part == "q7/f0"} == {
        "#0",
        "+:INTEGER(#1,INTEGER:1)",
    }
    joined = relations(
        "SELECT a.x, g.n FROM t a JOIN (SELECT x, COUNT(*) AS n FROM u GROUP BY x) g ON g.x = a.x"
    )
    own = [name for part, name in joined.inputs if part == "q7/f0"]
    (form,) = (name for name in own if name != "t")
    assert len(own) == 2
    assert (form, "#0") in joined.group_keys  # the groups inside are a part of their own
    assert relations("SELECT a.s FROM t a, u b WHERE a.x = b.x").group_keys == []


def test_relations_are_the_same_whenever_they_are_made() -> None:
    for text in TEXTS:
        assert relations(text) == relations(text)
        assert relations(text).conditions.predicate_sets
        assert len({name for name, *_ in relations(text).conditions.literals}) == len(
            relations(text).conditions.literals
        )


def test_joins_that_are_only_asked_for_partners_are_not_computed() -> None:
    found = relations("SELECT DISTINCT a.s FROM t a, u b WHERE a.x = b.x AND a.y > b.y")
    parts = {part for part, name in found.inputs if name == "u"}
    assert not parts, "u stands below a semi join, which is an input itself"
