"""Knowledge of a run whose queries need looks of their own."""

from types import SimpleNamespace
from typing import Any

from federated_optimizer.coordinator.adaptation.known_runs import LONGEST_PAUSE, KnownRun

PAUSE = 60_000_000
ROWS, BYTES = ("sources", "room", "rows"), ("row_bytes", "room", "")


def query(name: str) -> Any:
    return SimpleNamespace(id=name, text=f"text of {name}")


def look(name: str, basis: Any, apart: str = "") -> Any:
    """Return what a look at a query first found."""
    bundle = SimpleNamespace(text=f"text of {name}")
    return SimpleNamespace(
        planned=SimpleNamespace(bundle=bundle), basis=basis, apart=dict.fromkeys(apart, "other")
    )


def known_run() -> KnownRun:
    bundle: Any = None
    return KnownRun(bundle, 0, ((0, 0), (0, 0)))


A, B, C = map(query, "abc")


def test_each_query_that_asks_otherwise_gets_one_look_of_its_own() -> None:
    known = known_run()
    assert known.begin_look([A, B, C], 0, PAUSE) == [A, B, C]
    known.note_look(look("a", {ROWS: 1.0}, "bc"), [A, B, C], "why", 0)
    for now, first, left in ((1, B, "c"), (2, C, "")):
        own = known.next_own([A, B, C], now)
        assert own is not None
        assert own.reason == "why"
        queries = known.begin_look([A, B, C], now, PAUSE)
        assert queries[0] is first
        assert known.own[first.text].again == now + PAUSE, (
            "not at once again, if it comes to naught"
        )
        others = "".join(q.id for q in (A, B, C) if q is not first)
        known.note_look(look(first.id, {}, others), queries, "why", now)
        assert set(known.own) == {f"text of {name}" for name in left}
    assert known.next_own([A, B, C], 3 * PAUSE) is None


def test_facts_count_from_the_first_look_that_rests_on_them() -> None:
    known = known_run()
    known.note_look(look("a", {ROWS: 1.0}, "b"), [A, B], "", 0)
    known.note_look(look("b", {ROWS: 100.0, BYTES: 5.0}, "a"), [B, A], "", 1)
    assert known.basis == {ROWS: 1.0, BYTES: 5.0}
    known.note_look(look("a", {ROWS: 100.0}, "b"), [A, B], "", 2)
    assert known.basis == {ROWS: 100.0}
    # The others have left, or a move was given up: one look does not stand for all of them.
    known.basis = None
    known.note_look(look("b", {ROWS: 100.0}, "a"), [B, A], "", 3)
    assert known.basis is None
    known.note_look(look("b", {ROWS: 100.0}), [B], "", 4)
    assert known.basis == {ROWS: 100.0}


def test_a_query_whose_looks_fail_is_left_out_for_pauses_that_double() -> None:
    known, again = known_run(), 0
    for failed, pause in enumerate((2, 4, 8, 16, 32, 60, 60, 60), 1):
        now = failed * 10 * LONGEST_PAUSE
        assert known.begin_look([A, B], now, PAUSE)[0] is A
        known.look_failed(A.text, "why", now, PAUSE)
        assert known.has_failed
        again = now + pause * PAUSE
        assert known.next_own([A, B], again - 1) is None
        assert known.begin_look([A, B], again - 1, PAUSE) == [B]
        assert known.next_own([A, B], again) is not None
    assert known.next_own([B], again) is None, "it has gone"
    assert not known.has_failed
