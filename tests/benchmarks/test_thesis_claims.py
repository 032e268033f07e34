"""Claims are judged by the round that they speak of."""

from typing import Any

from benchmarks._argus.configurations import WANTED_TWICE
from benchmarks._argus.thesis_claims import ALL, LATEST, MATCH_PLAN, NO_JOINS, ratio_of, verdicts


def round_of(queries: int, **figures: dict[str, Any]) -> dict[str, Any]:
    return {"queries": queries, "configurations": figures}


def figure(update: float, weighted: float = 1.0) -> dict[str, Any]:
    return {
        "update_ms": [update] * 3,
        "update_ms_median": update,
        "weighted": weighted,
        "registrations_a_second": 100.0,
    }


FOUND: dict[str, Any] = {
    "queries": 768,
    "rounds": [
        round_of(300, **{ALL: figure(2.0), NO_JOINS: figure(100.0), MATCH_PLAN: figure(4.0)}),
        round_of(768, **{ALL: figure(10.0), MATCH_PLAN: figure(8.0), NO_JOINS: figure(30.0)}),
        round_of(800, **{ALL: figure(11.0)}),
    ],
}


def test_a_ratio_is_of_its_round_or_of_the_last_that_has_both() -> None:
    assert ratio_of(FOUND, "update_ms_median", NO_JOINS, 300) == (300, 50.0)
    assert ratio_of(FOUND, "update_ms_median", NO_JOINS, LATEST) == (768, 3.0)
    assert ratio_of(FOUND, "update_ms_median", NO_JOINS, 400) is None
    assert ratio_of(None, "update_ms_median", NO_JOINS, LATEST) is None


def test_the_default_of_the_product_has_a_figure_of_its_own() -> None:
    words = f"fed: size with “{NO_JOINS}” over “{ALL}”, at the end"
    both = {ALL: figure(1.0, 2.0), NO_JOINS: figure(1.0, 40.0)}
    last = round_of(768, **both, **{WANTED_TWICE: figure(1.0, 8.0)})
    (said,) = (v for v in verdicts({"fed": {"queries": 768, "rounds": [last]}}) if v.words == words)
    assert (said.ours, said.product) == ("20.00 (768 queries)", "5.00 (768 queries)")


def test_verdicts_say_what_held() -> None:
    said = {each.words: each for each in verdicts({"fed": FOUND})}
    at_300 = said[f"fed: update with “{NO_JOINS}” over “{ALL}”, at 300 queries"]
    assert at_300.held is True
    assert at_300.ours == "50.00 (300 queries)"
    assert said[f"fed: update with “{NO_JOINS}” over “{ALL}”, at the end"].held is False
    assert said[f"fed: “{ALL}” is never slower than “{MATCH_PLAN}”"].held is False
    assert said["fed: 200 registrations a second in the last round"].held is None
    assert any(each.held is None for each in said.values())


def test_never_slower_is_judged_batch_by_batch() -> None:
    words = f"fed: “{ALL}” is never slower than “{MATCH_PLAN}”"

    def judged(ours: list[float], theirs: list[float]) -> tuple[str, bool | None]:
        each = {ALL: {**figure(9.0), "update_ms": ours}}
        each[MATCH_PLAN] = {**figure(1.0), "update_ms": theirs}
        found = {"queries": 400, "rounds": [round_of(400, **each)]}
        verdict = next(v for v in verdicts({"fed": found}) if v.words == words)
        return verdict.ours, verdict.held

    # The medians are 6.0 and 4.0, but no usual batch takes longer.
    assert judged([3.0, 6.0, 12.0], [3.0, 12.0, 4.0])[1] is True
    assert judged([3.0, 6.0, 12.0], [2.0, 5.0, 11.0]) == (
        "at most 1.20 times as long (at 400 queries)",
        False,
    )


def test_claims_of_the_end_are_not_judged_by_a_part_of_the_queries() -> None:
    words = f"fed: update with “{NO_JOINS}” over “{ALL}”, at the end"
    said = {each.words: each for each in verdicts({"fed": {**FOUND, "queries": 1_000}})}
    assert said[words].held is None
    assert said[words].ours == "3.00 (768 queries)"


def test_a_round_in_which_a_network_was_only_planned_counts_for_sizes_alone() -> None:
    planned = {"weighted": 40.0}
    last = round_of(900, **{ALL: figure(11.0, 2.0), NO_JOINS: planned, MATCH_PLAN: planned})
    found = {"queries": 900, "rounds": [*FOUND["rounds"], last]}
    assert ratio_of(found, "weighted", NO_JOINS, LATEST) == (900, 20.0)
    assert ratio_of(found, "update_ms_median", NO_JOINS, LATEST) == (768, 3.0)
    said = {each.words: each for each in verdicts({"fed": found})}
    assert said[f"fed: size with “{NO_JOINS}” over “{ALL}”, at the end"].held is True
    assert said[f"fed: update with “{NO_JOINS}” over “{ALL}”, at the end"].held is None
