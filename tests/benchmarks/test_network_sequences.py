"""Answers stay right while queries, rows and sites come and go; a wrong row would be found."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks._sequences import network_sequence
from benchmarks._sequences.actions import Deliver, Deregister, Insert, Kill, Register, Restart
from benchmarks._sequences.actions import Settle as Rest
from benchmarks._sequences.diversity import COMPARED, NEEDED, OVER_OTHERS, WITH_DUCKDB, lacking
from benchmarks._sequences.network_sequence import Setting, WrongRowsError
from benchmarks._sequences.overlapping_queries import GROUPS, TEMPLATES
from benchmarks._sequences.seed_ranges import SeedRanges
from benchmarks._sequences.seeded_run import Failure, played, run_seed, setting_of
from benchmarks.network_sequences import results, run_range
from federated_optimizer.sharing.strategy import Materialize, Strategy
from stream_engine.simulation.network import Network as Sites
from streamsql.data.delta import Delta

ACTIONS = 30


@pytest.mark.parametrize("first", [0, 12, 24, 36])
def test_every_query_has_the_rows_of_each_oracle(first: int) -> None:
    counts = run_range((first, first + 12), ACTIONS)
    assert isinstance(counts, Counter), counts
    assert counts[COMPARED] > 100
    assert counts[WITH_DUCKDB] > 10
    assert counts[OVER_OTHERS] > 0


def test_there_are_sixty_templates_that_differ() -> None:
    assert len({template.text for template in TEMPLATES}) >= 60
    assert len(TEMPLATES) == sum(map(len, GROUPS.values()))


def test_what_a_run_computes_for_itself_is_read_by_nobody() -> None:
    """A node that was planned before what it reads was widened computes that itself."""
    groups = "FROM readings r, seats s WHERE r.room = s.room GROUP BY"
    counts = played(
        Setting(281, Strategy.ALL, Materialize.EAGER, ("base",), colocated=False),
        Register(5, f"SELECT s.room, COUNT(*) AS n {groups} s.room HAVING COUNT(*) > 1"),
        Register(8, f"SELECT r.room, r.level, COUNT(*) AS n {groups} ROLLUP (r.room, r.level)"),
        Insert("gw-2", "seats", ("m5", "r4", 1, 0.25)),
        Insert("gw-2", "readings", ("s5", "r4", 0, 4)),
        Rest(),
    )
    assert counts["nodes widened"] > 0
    assert counts[COMPARED] > 0


def test_all_strategies_have_their_turn_and_both_ways_of_making_nodes() -> None:
    settings = [setting_of(seed) for seed in range(36)]
    assert {each.strategy for each in settings} == set(Strategy)
    shared = [each for each in settings if each.strategy == Strategy.ALL]
    assert {each.materialize for each in shared} == set(Materialize)
    assert {len(each.bases) for each in shared} == {1, 2}


def test_a_seed_has_one_sequence() -> None:
    assert run_seed(5, ACTIONS) == run_seed(5, ACTIONS)


def test_a_set_of_sequences_without_what_it_is_about_is_told() -> None:
    counts = Counter(dict.fromkeys(NEEDED, 1))
    assert not lacking(counts)
    counts["nodes widened"] = 0
    assert lacking(counts) == ["nodes widened"]


# --- failures -----------------------------------------------------------------------------------


def lose_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    result = Sites.result

    def without_one(sites: Sites, query: str) -> Delta:
        rows = dict(result(sites, query))
        if rows and not query.startswith("alone"):
            rows.popitem()
        return rows

    monkeypatch.setattr(Sites, "result", without_one)


def test_a_row_that_is_lost_is_found_and_its_story_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lose_rows(monkeypatch)
    found = run_seed(1, 60)
    assert isinstance(found, Failure)
    assert "from scratch" in found.words
    kinds = [type(action) for action in found.actions]
    assert len(kinds) <= 3, "a query, a row and rest"
    assert Register in kinds
    with pytest.raises(WrongRowsError, match="from scratch"):
        played(found.setting, *found.actions)


def test_a_story_is_printed_as_python_that_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lose_rows(monkeypatch)
    found = run_seed(1, 60)
    told = str(found).partition("\n\n")[2]
    names = {**vars(network_sequence), "played": played}
    with pytest.raises(WrongRowsError):
        eval(told, names)  # noqa: S307  (what the program has printed)


def test_an_error_is_a_failure_and_no_other_kind_of_it_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise KeyError("no such run")

    monkeypatch.setattr(Sites, "uninstall", refuse)
    found = run_seed(2, ACTIONS)
    assert isinstance(found, Failure)
    assert "no such run" in found.words
    assert "Traceback" in found.words
    assert [type(action) for action in found.actions] == [Register], "it ends at last"


def test_a_story_leaves_out_what_cannot_be_done() -> None:
    gone = Insert("gw-1", "visits", ("w1", "r1", 1, 0))
    counts = played(
        Setting(1),
        Deregister(7),
        Restart("gw-1"),
        Kill("gw-1", in_flight_survives=True),
        gone,
        Register(1, "SELECT DISTINCT room FROM visits"),
        Deliver(3),
        Rest(),
    )
    assert counts[COMPARED] == 2, "at the rest, and at the end"


# --- many ---------------------------------------------------------------------------------------


def test_ranges_that_are_done_are_not_run_again(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    ranges = SeedRanges.read(state, ACTIONS)
    assert list(ranges.left(0, 50, 20)) == [(0, 20), (20, 40), (40, 50)]
    ranges.add(20, 40, Counter(queries=3))
    ranges.add(0, 10, Counter(queries=2))
    ranges.write(state)
    again = SeedRanges.read(state, ACTIONS)
    assert again.counts == {"queries": 5}
    assert again.sequences == 30
    assert list(again.left(0, 50, 20)) == [(10, 20), (40, 50)]
    assert list(again.left(25, 30, 20)) == []
    again.add(10, 20, Counter())
    assert again.done == [(0, 40)]
    with pytest.raises(ValueError, match="30 actions"):
        SeedRanges.read(state, ACTIONS + 1)


def test_processes_find_the_same() -> None:
    left = [(0, 2), (2, 4)]
    assert list(results(left, 10, 2)) == list(results(left, 10, 1))


def test_the_program_goes_on_where_it_was_ended(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    command = [sys.executable, "-m", "benchmarks.network_sequences", "--state", str(state)]
    for sequences, ran in (("3", "3 of 3"), ("5", "2 of 2")):
        told = subprocess.run(
            [*command, "--sequences", sequences, "--actions", "8", "--json"],
            check=True,
            capture_output=True,
            text=True,
        )
        assert ran in told.stderr
        assert f'"sequences": {sequences}' in told.stdout
