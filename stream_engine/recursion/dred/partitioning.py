"""Where the rows of a recursion live when sets of them travel between sites."""

from stream_engine.recursion.placement import (
    LeafRoute,
    Placement,
    is_base,
    placement_of,
    recursive_keys,
)
from stream_engine.recursion.program import Program
from stream_engine.recursion.rules import RECURSIVE
from streamsql.errors import UnsupportedError


def partitioning(program: Program) -> Placement:
    """Return the placement of a program; rows that compete for being best share a site.

    Where the join keys would spread a group of the aggregate selection over sites, the relation is
    partitioned by the group, and leaf rows without all of its columns go to all sites.
    """
    chosen = placement_of(program.rules, len(program.uses))
    if program.selection is None or set(chosen.columns) <= set(program.selection.group):
        return chosen
    columns = tuple(sorted(set(program.selection.group)))
    routes: list[dict[LeafRoute, None]] = [{} for _ in program.uses]
    for rule in program.rules:
        for atom, leaf in () if is_base(rule) else enumerate(rule.atoms):
            if leaf != RECURSIVE:
                keys = recursive_keys(rule, atom)
                found = tuple(keys[c] for c in columns) if keys.keys() >= set(columns) else None
                routes[leaf][LeafRoute(found)] = None
    return Placement(columns, tuple(tuple(route) for route in routes))


def check_linear(program: Program, strategy: str) -> None:
    """Refuse rules that join rows of different partitions.

    Raises:
        UnsupportedError: A rule reads the relation more than once.
    """
    if not program.is_linear:
        raise UnsupportedError(
            f"recursion {program.name} joins itself, which strategy {strategy} cannot do while its "
            "rows are spread over sites",
            hint="add way = 'centre' or way = 'flood'",
        )
