"""Names of what bundles compute, and which of them only one query can read."""

import pytest
from msgspec.structs import replace

from federated_optimizer.network.shareable import fingerprint, fragment_prints, why_alone
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import plan
from streamsql.algebra.operators import Fixpoint, RemoteSource, walk_plan
from streamsql.binder import bind_query
from streamsql.syntax import Query, parse_statement
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from tests.streamsql.from_text import catalog_of

CATALOG = catalog_of(
    """
CREATE SOURCE Room (rid TEXT, status TEXT, KEY (rid));
CREATE SOURCE Air (rid TEXT, celsius DOUBLE) WITH (ttl = '1 min');
CREATE SOURCE Reading (rid TEXT, celsius DOUBLE);
CREATE LINK SOURCE Link (src TEXT, dst TEXT, KEY (src, dst));
CREATE TABLE Machine (mid TEXT PRIMARY KEY, rid TEXT) WITH (source = 'csv', path = 'm.csv');
"""
)
SITES = Topology(
    gateways=dict.fromkeys(("gw-1", "gw-2"), frozenset({"room", "air", "reading", "link"})),
    bases=("base",),
)
SHARED = (
    "SELECT rid FROM Room",
    "SELECT status, COUNT(*) FROM Room GROUP BY status",
    "SELECT a.rid FROM Air a JOIN Room r ON a.rid = r.rid JOIN Machine m ON m.rid = r.rid",
    "SELECT rid, celsius FROM Air [RANGE 10 SECONDS]",
    "SELECT MAX(celsius) FROM Air",
    "SELECT rid FROM Room EXCEPT SELECT rid FROM Machine",
    "SELECT rid FROM Room ORDER BY rid LIMIT 3",
    "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM Link UNION "
    "SELECT r.a, l.dst FROM r JOIN Link l ON r.b = l.src) SELECT a, b FROM r",
)
ALONE = (
    ("SELECT rid FROM Reading", "no readings of reading"),
    ("SELECT rid FROM Reading [RANGE 1 MINUTE]", "no readings of reading"),
    ("SELECT rid FROM Reading [NOW]", "no readings of reading"),
    ("SELECT COUNT(*) FROM Air [ROWS 5]", "the base site reads air itself"),
    ("ISTREAM(SELECT rid FROM Room)", "stream of changes"),
    ("RSTREAM(SELECT rid FROM Room)", "stream of changes"),
    ("SELECT query FROM sys_queries", "sys_queries"),
    ("SELECT r.rid FROM Room r JOIN sys_gateways g ON g.site = r.rid", "sys_gateways"),
)


def bundle_of(text: str, query: str = "q1", topology: Topology = SITES) -> FragmentBundle:
    statement = parse_statement(text)
    assert isinstance(statement, Query)
    return plan(bind_query(statement, CATALOG), topology, query=query, text=text)


@pytest.mark.parametrize("text", SHARED)
def test_functions_of_what_sites_hold_are_for_any_number_of_queries(text: str) -> None:
    assert not why_alone(bundle_of(text))


@pytest.mark.parametrize(("text", "why"), ALONE)
def test_what_rests_on_when_a_query_began_is_for_one(text: str, why: str) -> None:
    assert why in why_alone(bundle_of(text))


def test_windows_that_begin_full_are_for_one_query() -> None:
    bundle = replace(bundle_of("SELECT rid FROM Room"), fills=("reading",))
    assert why_alone(bundle) == "its windows begin with what the lake has of reading"


def test_fingerprints_are_equal_for_equal_work_only() -> None:
    names = [fingerprint(bundle_of(text)) for text in SHARED]
    assert len(set(names)) == len(SHARED)
    assert names == [fingerprint(bundle_of(text.lower(), "q2")) for text in SHARED]
    bundle = bundle_of(SHARED[0])
    said = replace(bundle, text="other", version=7, query="q9")
    assert fingerprint(said) == fingerprint(bundle), "of whom it is says nothing"
    elsewhere = Topology({"gw-1": frozenset({"room"})}, bases=("base",))
    assert fingerprint(bundle_of(SHARED[0], topology=elsewhere)) != fingerprint(bundle)
    assert fingerprint(replace(bundle, units=("K",))) != fingerprint(bundle)
    assert fingerprint(bundle_of("SELECT rid AS r FROM Room")) != fingerprint(bundle)


def test_equal_fragments_of_different_queries_have_equal_names() -> None:
    inner = "SELECT r.status, m.mid FROM Room r JOIN Machine m ON r.rid = m.rid"
    left = inner.replace("JOIN", "LEFT JOIN")
    first, second = (leaf_prints(bundle_of(text)) for text in (inner, left))
    assert first
    assert first == second
    other = leaf_prints(bundle_of(f"{inner} WHERE r.status = 'open'"))
    assert len(first - other) == 1
    alone = Topology({"gw-1": frozenset({"room"})}, bases=("base",), static="static")
    assert not first <= leaf_prints(bundle_of(inner, topology=alone))


def leaf_prints(bundle: FragmentBundle) -> set[str]:
    leaves = {fragment.id for fragment in bundle.fragments if fragment.consumer}
    return {name for fragment, name in fragment_prints(bundle).items() if fragment in leaves}


def test_leaves_for_a_base_and_results_at_one_are_read_by_others() -> None:
    recursion = SHARED[-1]
    bundle = bundle_of(f"{recursion} WITH (way = 'witness')")
    named = fragment_prints(bundle)
    for fragment in bundle.fragments:
        by_itself = all(
            not isinstance(node, RemoteSource | Fixpoint) for node in walk_plan(fragment.plan)
        )
        to_base = fragment.destinations == ("base",) and fragment.engine != Engine.BASE
        is_result = not fragment.consumer
        assert (fragment.id in named) == (is_result or (by_itself and to_base))


def test_a_copy_of_a_result_has_its_name() -> None:
    bundle = bundle_of(SHARED[-1])
    (result,) = (f for f in bundle.fragments if not f.consumer)
    copy = replace(result, id="f9", consumer="top", destinations=result.sites)
    top = Fragment("top", Engine.BASE, RemoteSource("f9", bundle.schema), result.sites)
    below = tuple(f for f in bundle.fragments if f is not result)
    reader = replace(bundle, query="q2", fragments=(top, copy, *below))
    assert fragment_prints(reader)["f9"] == fragment_prints(bundle)[result.id]
    away = replace(copy, destinations=("elsewhere",))
    assert "f9" not in fragment_prints(replace(reader, fragments=(top, away, *below)))


def test_words_change_neither_what_runs_nor_its_name() -> None:
    bundle = bundle_of(SHARED[-1])
    told = tuple(
        replace(
            f, reasons=("it costs 9 times as much",), notes=("so it is",), grouped=(("a", (0,)),)
        )
        for f in bundle.fragments
    )
    other = replace(bundle, fragments=told)
    assert other.runs_as(bundle)
    assert fingerprint(other) == fingerprint(bundle)
    first = replace(bundle.fragments[0], consumer="f9")
    moved = replace(bundle, fragments=(first, *bundle.fragments[1:]))
    assert not moved.runs_as(bundle)
