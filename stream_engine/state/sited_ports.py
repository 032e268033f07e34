"""Names of what fragments send as rows with the site that has sent them, as a last column."""

from collections.abc import Iterable

from streamsql.algebra.operators import Plan, RemoteSource, Younger, transform_up, walk_plan
from streamsql.data.delta import Delta, add

_SITED = "@sites"


def sited(port: str) -> str:
    """Return the name under which the rows of a port come with their sites.

    Examples:
        >>> sited("f1"), is_sited("f1@sites"), port_of("f1@sites")
        ('f1@sites', True, 'f1')
    """
    return port + _SITED


def is_sited(name: str) -> bool:
    """Whether a name is that of rows with their sites."""
    return name.endswith(_SITED)


def port_of(name: str) -> str:
    """Return the port of a name."""
    return name.removesuffix(_SITED)


def sited_plan(plan: Plan) -> Plan:
    """Return a plan over rows with their sites, which are no columns of it but behind them."""

    def change(node: Plan) -> Plan:
        if isinstance(node, RemoteSource):
            return RemoteSource(sited(node.fragment), node.columns)
        return node

    return transform_up(plan, change)


def sited_fragments(plans: Iterable[Plan]) -> frozenset[str]:
    """Return the fragments of which plans read rows with their sites."""
    return frozenset(
        leaf.fragment
        for plan in plans
        for node in walk_plan(plan)
        if isinstance(node, Younger)
        for leaf in walk_plan(node)
        if isinstance(leaf, RemoteSource)
    )


def with_site(delta: Delta, site: str) -> Delta:
    """Return a change of rows that a site has sent, with the site behind each."""
    return {(*row, site): weight for row, weight in delta.items()}


def without_site(delta: Delta) -> Delta:
    """Return a change of rows without their sites: rows of several sites may be one."""
    result: Delta = {}
    for row, weight in delta.items():
        add(result, row[:-1], weight)
    return result
