"""Random fragmentations over several sites, and the answer they should give."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from stream_engine.simulation.fragmentations import (
    counted_at_base,
    joined_by_hash,
    joined_with_copies,
)
from stream_engine.testing.plans import columns_of_type, plans
from streamsql.algebra.expressions import Expression, Literal
from streamsql.algebra.operators import Plan, Project, Scan
from streamsql.data.delta import Delta, accumulate, expand
from streamsql.data.types import DataType, Row
from streamsql.reference.evaluate import evaluate
from streamsql.reference.reference_database import Database
from streamsql.wire.bundles.partitioning import site_of
from streamsql.wire.fragments import FragmentBundle


@st.composite
def bundles(draw: st.DrawFn, sources: Sequence[Scan], gateways: tuple[str, ...]) -> FragmentBundle:
    """Return a random fragmentation over gateways and a base.

    What is pushed to the gateways is any plan over the sources, cut to a text and a number.
    """
    first, second = (
        _two_columns(draw(plans(sources, depth=draw(st.integers(0, 2))))) for _ in range(2)
    )
    sites = (*gateways, "base")
    match draw(st.integers(0, 2)):
        case 0:
            return counted_at_base(first, gateways)
        case 1:
            count = draw(st.integers(1, len(sites)))
            joiners = draw(st.permutations(sites))[:count]
            return joined_by_hash(first, second, gateways, tuple(joiners))
        case _:
            return joined_with_copies(first, second, sites)


def _two_columns(plan: Plan) -> Plan:
    """Cut or pad a plan to a TEXT and an INTEGER column."""
    texts = columns_of_type(plan.schema, DataType.TEXT)
    integers = columns_of_type(plan.schema, DataType.INTEGER)
    first: Expression = texts[0] if texts else Literal("a", DataType.TEXT)
    second: Expression = integers[0] if integers else Literal(1, DataType.INTEGER)
    return Project(plan, (first, second), ("k", "n"))


def expected_result(bundle: FragmentBundle, databases: Mapping[str, Database], now: int) -> Delta:
    """Return what a bundle without recursion over several sites should give.

    Every fragment is evaluated from scratch at every site of it that lives, over that site's own
    history and what the fragments before it send there.

    Args:
        bundle: Fragments in producer order.
        databases: History of each living site.
        now: The time.
    """
    arriving: dict[tuple[str, str], list[Row]] = {}
    result: Delta = {}
    for fragment in bundle.fragments:
        for site in [site for site in fragment.sites if site in databases]:
            names = [f.id for f in bundle.fragments]
            remote = {name: arriving.get((site, name), []) for name in names}
            relation = evaluate(fragment.plan, databases[site], now, remote)
            if not fragment.consumer:
                accumulate(result, relation)
                continue
            for row in expand(relation):
                owners: Sequence[str] = fragment.destinations
                if fragment.partition:
                    key = tuple(row[position] for position in fragment.partition)
                    owners = [site_of(key, fragment.destinations)]
                for owner in owners:
                    arriving.setdefault((owner, fragment.id), []).append(row)
    return result
