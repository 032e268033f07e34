"""Names of what fragments send as rows with the site that has sent them, as a last column."""

from collections.abc import Iterable

from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import Filter, Plan, Project, RemoteSource, Younger, walk_plan
from streamsql.data.delta import Delta, add
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import InternalError

_SITED = "@sites"
_SITE = Schema.of(("site@", DataType.TEXT))


def sited(port: str) -> str:
    """Return the name under which the rows of a port come with their sites.

    Examples:
        >>> sited("f1"), is_sited("f1@sites"), port_of("f1@sites")
        ('f1@sites', True, 'f1')
    """
    return port + _SITED


def is_sited(name: str) -> bool:
    """Return True for a name that `sited` has made."""
    return name.endswith(_SITED)


def port_of(name: str) -> str:
    """Return the port of a name."""
    return name.removesuffix(_SITED)


def sited_plan(plan: Plan) -> Plan:
    """Return a plan over rows of other sites with the site as a further, last column.

    Raises:
        InternalError: It does more than to filter and choose what a fragment sends.
    """
    match plan:
        case RemoteSource(fragment=port, columns=columns):
            return RemoteSource(sited(port), columns + _SITE)
        case Filter(input=child, predicate=predicate):
            return Filter(sited_plan(child), predicate)
        case Project(input=child, expressions=expressions, names=names):
            site = Column(len(child.schema), _SITE.names[0], DataType.TEXT)
            return Project(sited_plan(child), (*expressions, site), (*names, *_SITE.names))
        case _:
            raise InternalError("younger rows and their bounds come from other sites")


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
