"""Recursions with bounds over the views without: exactly their own rows, or no answer."""

import re

import pytest

from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import normalize
from federated_optimizer.sharing.refusals import NotSharedError
from federated_optimizer.sharing.rules import bounded_views
from streamsql.algebra.operators import Fixpoint, Plan, RemoteSource, walk_plan
from streamsql.data.delta import expand
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """
CREATE SOURCE link (src TEXT, dst TEXT, floor INTEGER, cost INTEGER) WITH (ttl = '1 h');
CREATE SOURCE seed (name TEXT, at TEXT, floor INTEGER, weight DOUBLE) WITH (ttl = '1 h');
"""
)
TOPOLOGY = Topology({"gw-1": frozenset({"link", "seed"}), "gw-2": frozenset({"link", "seed"})})
NOW = 1_000
LINKS: list[Row] = [
    ("a", "b", 1, 1),
    ("b", "c", 1, 2),
    ("c", "a", 2, 4),
    ("b", "d", 2, 1),
    ("d", "e", 2, 3),
    ("e", "d", 1, 1),
    (None, "a", None, 2),
    ("a", None, 1, 5),
]
SEEDS: list[Row] = [
    ("x", "a", 1, 0.0),
    ("y", "d", 2, -0.0),
    ("x", "e", 2, 1.5),
    (None, "b", 1, 0.5),
]
DATABASE = Database()
DATABASE.append("link", [SourceEvent(row, NOW) for row in LINKS])
DATABASE.append("seed", [SourceEvent(row, NOW) for row in SEEDS])

REACHABLE = """WITH RECURSIVE reach (src, dst) AS (SELECT src, dst FROM link {}
    UNION SELECT r.src, l.dst FROM reach r JOIN link l ON r.dst = l.src) SELECT {} FROM reach"""
FLOORS = """WITH RECURSIVE region (name, at, floor) AS (SELECT name, at, floor FROM seed {}
    UNION SELECT r.name, l.dst, r.floor FROM region r JOIN link l
      ON r.at = l.src AND l.floor = r.floor {}) SELECT name, at, floor FROM region"""
OF_ONE_FLOOR = FLOORS.format("WHERE floor = 2", "AND l.floor = 2").replace(
    "AND l.floor = r.floor ", ""
)
PATHS = """WITH RECURSIVE p (src, dst, hops) AS (SELECT src, dst, 1 FROM link {}
    UNION SELECT p.src, l.dst, p.hops + 1 FROM p JOIN link l ON p.dst = l.src WHERE p.hops < 4)
    SELECT {} FROM p {}"""
ANSWERED = (
    (REACHABLE.format("WHERE src = 'a'", "dst"), REACHABLE.format("", "src, dst")),
    (
        REACHABLE.format("WHERE src > 'a' AND src < 'd'", "src, dst"),
        REACHABLE.format("WHERE src > 'a'", "dst, src"),
    ),
    (REACHABLE.format("", "src, dst") + " WHERE src = 'a'", REACHABLE.format("", "src, dst")),
    (FLOORS.format("WHERE floor = 2", ""), FLOORS.format("", "")),
    (FLOORS.format("WHERE floor = 2", "AND l.floor = 2"), FLOORS.format("", "")),
    (OF_ONE_FLOOR, FLOORS.format("", "")),
    (FLOORS.format("WHERE name = 'x'", ""), FLOORS.format("", "")),
    (
        PATHS.format("WHERE src = 'a'", "dst, MIN(hops) AS h", "GROUP BY src, dst"),
        PATHS.format("", "src, dst, MIN(hops) AS h", "GROUP BY src, dst"),
    ),
    (
        PATHS.format("WHERE src = 'a'", "src, COUNT(*) AS n", "GROUP BY src"),
        PATHS.format("", "src, hops, COUNT(*) AS n", "GROUP BY src, hops"),
    ),
)
REFUSED = (
    (
        REACHABLE.format("WHERE dst = 'b'", "src, dst"),
        REACHABLE.format("", "src, dst"),
        "does not keep",
    ),
    (
        REACHABLE.format("WHERE cost > 1", "src, dst"),
        REACHABLE.format("", "src, dst"),
        "does not keep",
    ),
    (
        REACHABLE.format("", "src, dst"),
        REACHABLE.format("WHERE src = 'a'", "src, dst"),
        "other rows",
    ),
    (REACHABLE.format("WHERE src = 'a'", "src, dst"), REACHABLE.format("", "dst"), "does not show"),
    (FLOORS.format("", "AND l.floor = 2"), FLOORS.format("", ""), "steps differ"),
    (FLOORS.format("WHERE floor = 1", "AND l.floor = 2"), FLOORS.format("", ""), "steps differ"),
    (FLOORS.format("WHERE floor = 2", "AND l.cost > 1"), FLOORS.format("", ""), "steps differ"),
    (
        PATHS.format("WHERE src = 'a'", "src, dst, MIN(hops) AS h", "GROUP BY src, dst"),
        PATHS.format("", "src, dst, hops", ""),
        "keep other rows",
    ),
    (FLOORS.format("WHERE weight = 0.0", ""), FLOORS.format("", ""), "does not keep"),
    (
        REACHABLE.format("WHERE src = 'a'", "src, dst").replace("UNION", "UNION /* */"),
        "SELECT src, dst FROM link",
        "have not both one recursion",
    ),
)


def normalized(text: str) -> Plan:
    return normalize(bound_query(text, CATALOG).plan, TOPOLOGY)


def answered(wanted: str, offered: str) -> Plan | None:
    ours, theirs = normalized(wanted), normalized(offered)
    found = bounded_views.answer(ours, theirs, RemoteSource("@q1/f0", theirs.schema))
    if found is not None:
        assert found.schema == ours.schema
        remote = {"@q1/f0": list(expand(evaluate(theirs, DATABASE, NOW)))}
        assert evaluate(found, DATABASE, NOW, remote) == evaluate(ours, DATABASE, NOW)
        assert not any(isinstance(node, Fixpoint) for node in walk_plan(found))
    return found


@pytest.mark.parametrize(("wanted", "offered"), ANSWERED)
def test_bounded_recursions_come_from_views_that_run(wanted: str, offered: str) -> None:
    assert answered(wanted, offered) is not None


@pytest.mark.parametrize(("wanted", "offered", "words"), REFUSED)
def test_others_are_refused_in_words(wanted: str, offered: str, words: str) -> None:
    assert answered(wanted, offered) is None
    view = normalized(offered)
    with pytest.raises(NotSharedError, match=re.escape(words)):
        bounded_views.answered(normalized(wanted), view, view)
