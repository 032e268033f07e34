"""Hand-made fragmentations of small queries, the shapes that the optimizer makes."""

from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Join,
    JoinKind,
    Plan,
    RemoteSource,
)
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle


def counted_at_base(
    pushed: Plan, gateways: tuple[str, ...], *, query: str = "q", version: int = 1
) -> FragmentBundle:
    """Return gateways that run a plan each, and a base that counts and sums up its first columns.

    The second column of the plan is numeric.
    """
    remote = RemoteSource("f1", pushed.schema)
    value = _column(pushed, 1)
    calls = (
        AggregateCall(AggregateFunction.COUNT_ALL, (), "n"),
        AggregateCall(AggregateFunction.SUM, (value,), "total"),
        AggregateCall(AggregateFunction.MAX, (value,), "most"),
    )
    top = Aggregate(remote, (0,), calls)
    return FragmentBundle(
        query,
        version,
        (
            Fragment("f1", Engine.GATEWAY, pushed, gateways, "f2", ("base",)),
            Fragment("f2", Engine.BASE, top, ("base",)),
        ),
        top.schema,
    )


def joined_by_hash(  # noqa: PLR0913  (the shape has that many places)
    left: Plan,
    right: Plan,
    producers: tuple[str, ...],
    joiners: tuple[str, ...],
    *,
    query: str = "q",
    version: int = 1,
) -> FragmentBundle:
    """Return a left join on the first columns, partitioned over sites, each emitting its results.

    Both inputs run on every producer, a site with sources; a producer may be a joiner.
    """
    top = Join(
        RemoteSource("f1", left.schema),
        RemoteSource("f2", right.schema),
        JoinKind.LEFT,
        ((0, 0),),
    )
    return FragmentBundle(
        query,
        version,
        (
            Fragment("f1", Engine.GATEWAY, left, producers, "f3", joiners, (0,)),
            Fragment("f2", Engine.GATEWAY, right, producers, "f3", joiners, (0,)),
            Fragment("f3", Engine.GATEWAY, top, joiners),
        ),
        top.schema,
    )


def joined_with_copies(
    left: Plan, right: Plan, sites: tuple[str, ...], *, query: str = "q", version: int = 1
) -> FragmentBundle:
    """Return a join where each site keeps its left rows and gets a copy of all right rows.

    The base counts the pairs.
    """
    pairs = Join(left, RemoteSource("copies", right.schema), JoinKind.INNER, ((0, 0),))
    count = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
    top = Aggregate(RemoteSource("pairs", pairs.schema), (), (count,))
    return FragmentBundle(
        query,
        version,
        (
            Fragment("copies", Engine.GATEWAY, right, sites, "pairs", sites),
            Fragment("pairs", Engine.GATEWAY, pairs, sites, "top", ("base",)),
            Fragment("top", Engine.BASE, top, ("base",)),
        ),
        top.schema,
    )


def everywhere(plan: Plan, sites: tuple[str, ...], *, query: str = "q") -> FragmentBundle:
    """Return one fragment on several sites, each giving its results; recursions run together."""
    fragment = Fragment("f1", Engine.GATEWAY, plan, sites)
    return FragmentBundle(query, 1, (fragment,), plan.schema)


def _column(plan: Plan, position: int) -> Column:
    field = plan.schema.fields[position]
    return Column(position, field.name, field.dtype)
