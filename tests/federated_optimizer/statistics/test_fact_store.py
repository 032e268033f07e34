"""The facts of a federation: bounded, and the same in the catalog."""

import random

from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer.statistics.fact import (
    DAY,
    HOUR,
    Fact,
    Origin,
    Quantity,
    Subject,
    SubjectKind,
    exact,
)
from federated_optimizer.statistics.fact_store import (
    LONGEST_AGE,
    MAX_FACTS,
    SAVED_MICROSECONDS,
    Facts,
)


def fact(kind: SubjectKind, name: str, value: float = 1.0, at: int = 0, part: str = "") -> Fact:
    return exact(Subject(kind, name, part), Quantity.ROWS, value, at, Origin.COUNTED)


def test_a_hundred_thousand_subjects_do_not_fill_it() -> None:
    facts, most = Facts(), 0
    facts.put(fact(SubjectKind.ENGINE, "spark"))
    for number in range(100_000):
        facts.put(fact(SubjectKind.SOURCE, f"s{number}", at=number))
        most = max(most, len(facts))
    assert most <= MAX_FACTS
    assert len(facts) > MAX_FACTS * 0.9
    assert facts.find(Subject(SubjectKind.ENGINE, "spark"), Quantity.ROWS) is not None
    left = sorted(f.at for f in facts.of_kind(SubjectKind.SOURCE))
    assert left == list(range(100_000 - len(left), 100_000))  # the newest
    assert len(facts.unsaved()) == len(facts)


def test_predicates_go_before_sources() -> None:
    facts = Facts(most=100)
    for number in range(60):
        facts.put(fact(SubjectKind.SOURCE, f"s{number}", at=0))
    for number in range(1_000):
        facts.put(fact(SubjectKind.PREDICATE, "heat", at=DAY, part=f"celsius > {number}"))
    assert len(list(facts.of_kind(SubjectKind.SOURCE))) == 60
    assert len(facts) <= 100


def test_a_surer_fact_is_not_replaced_until_it_has_faded() -> None:
    facts, subject = Facts(), Subject(SubjectKind.PREDICATE, "heat", "celsius > 30")
    sure = Fact(subject, Quantity.SELECTIVITY, 0.25, 0.2, 0.3, 0, 0.9, Origin.COUNTED)
    vague = Fact(subject, Quantity.SELECTIVITY, 0.9, 0.1, 1.0, HOUR, 0.2, Origin.COUNTED)
    assert facts.learn(sure)
    assert not facts.learn(vague)
    assert facts.find(subject, Quantity.SELECTIVITY) == sure
    late = Fact(subject, Quantity.SELECTIVITY, 0.9, 0.1, 1.0, 3 * DAY, 0.2, Origin.COUNTED)
    assert facts.learn(late)
    assert facts.find(subject, Quantity.SELECTIVITY) == late


def test_facts_of_a_removed_site_and_old_ones_go() -> None:
    facts = Facts()
    for site in ("gw-1", "gw-2"):
        facts.put(fact(SubjectKind.SOURCE, "heat", part=site))
    facts.put(fact(SubjectKind.ENGINE, "spark"))
    facts.forget_part(SubjectKind.SOURCE, "gw-1")
    about = facts.about(SubjectKind.SOURCE, "heat", Quantity.ROWS)
    assert [f.subject.part for f in about] == ["gw-2"]
    facts.discard_old(LONGEST_AGE)
    assert len(facts) == 2
    facts.discard_old(LONGEST_AGE + 1)
    assert [f.subject.kind for f in facts] == [SubjectKind.ENGINE]


def test_what_hardly_changes_is_saved_seldom() -> None:
    facts = Facts()
    facts.put(fact(SubjectKind.SOURCE, "heat", 100.0))
    facts.saved(facts.unsaved())
    facts.put(fact(SubjectKind.SOURCE, "heat", 100.5, at=1))
    assert not facts.unsaved()
    facts.put(fact(SubjectKind.SOURCE, "heat", 102.0, at=2))
    assert len(facts.unsaved()) == 1
    facts.saved(facts.unsaved())
    facts.put(fact(SubjectKind.SOURCE, "heat", 102.0, at=2 + SAVED_MICROSECONDS))
    assert len(facts.unsaved()) == 1


@given(st.integers(0, 2**32))
def test_the_catalog_has_the_same_facts_after_each_save(seed: int) -> None:
    """Saving takes a while: facts change meanwhile, and some saves fail."""
    rng = random.Random(seed)
    database: dict[tuple[Subject, Quantity], Fact | None] = {}
    facts = Facts(most=12)

    def change() -> None:
        name = f"s{rng.randrange(20)}"
        if rng.random() < 0.2:
            facts.discard(Subject(SubjectKind.SOURCE, name), Quantity.ROWS)
        else:
            facts.put(fact(SubjectKind.SOURCE, name, rng.randrange(1, 1_000), rng.randrange(9)))

    for _ in range(30):
        change()
        if rng.random() < 0.4:
            changes = facts.unsaved()
            change()
            if rng.random() < 0.7:
                database.update(changes)
                facts.saved(changes)
    last = facts.unsaved()
    database.update(last)
    facts.saved(last)
    kept = {key: found for key, found in database.items() if found is not None}
    assert kept.keys() == {f.key for f in facts}
    for found in facts:
        stored = kept[found.key]
        assert abs(stored.value - found.value) <= 0.01 * stored.value
    assert not facts.unsaved()
    assert len(Facts(kept.values(), most=12)) == len(kept)


def test_what_is_no_finite_number_is_not_taken() -> None:
    facts = Facts()
    facts.put(fact(SubjectKind.SOURCE, "heat", 3.0))
    for value in (float("inf"), float("-inf"), float("nan")):
        facts.put(fact(SubjectKind.SOURCE, "heat", value))
        facts.put(fact(SubjectKind.SOURCE, "cold", value))
    assert [(f.subject.name, f.value) for f in facts] == [("heat", 3.0)]


def test_a_thing_is_forgotten_with_all_its_parts() -> None:
    facts = Facts()
    for name in ("heat", "seat"):
        for part in ("gw-1", "gw-2"):
            facts.put(fact(SubjectKind.SOURCE, name, part=part))
        facts.put(fact(SubjectKind.TABLE, name))
    facts.saved(facts.unsaved())
    assert facts.names(SubjectKind.SOURCE) == {"heat", "seat"}
    facts.forget_name(SubjectKind.SOURCE, "heat")
    assert facts.names(SubjectKind.SOURCE) == {"seat"}
    assert facts.names(SubjectKind.TABLE) == {"heat", "seat"}
    assert len(facts.unsaved()) == 2
