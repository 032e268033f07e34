"""A bundle as a graph in DOT: a cluster per fragment, and what travels between them."""

from collections.abc import Iterator

from streamsql.algebra.operators import RemoteSource
from streamsql.algebra.plan_graph import graph, numbered, plan_statements, quoted
from streamsql.wire.fragments import Fragment, FragmentBundle


def bundle_dot(bundle: FragmentBundle) -> str:
    """Return the fragments of a query as a graph."""
    return graph(_statements(bundle))


def _statements(bundle: FragmentBundle) -> Iterator[str]:
    doors = {
        (fragment.id, node.fragment): name
        for fragment in bundle.fragments
        for name, node, _, _ in numbered(fragment.plan, _prefix(fragment))
        if isinstance(node, RemoteSource)
    }
    for fragment in bundle.fragments:
        sites = ", ".join(fragment.sites) or "no site offers its sources"
        yield f"subgraph {quoted(f'cluster_{fragment.id}')} {{"
        yield f"  label={quoted(f'{fragment.id} {fragment.engine.upper()}: {sites}')};"
        for line in plan_statements(fragment.plan, _prefix(fragment)):
            yield f"  {line}"
        yield "}"
    yield 'result [shape=oval, label="result"];'
    for fragment in bundle.fragments:
        root = f"{_prefix(fragment)}0"
        if not fragment.consumer:
            yield f"{root} -> result [style=bold];"
            continue
        door = doors.get((fragment.consumer, fragment.id))
        to = door if door is not None else f"{fragment.consumer}_0"
        where = ", ".join(fragment.destinations)
        yield f"{root} -> {to} [style=bold, label={quoted(f'to {where}')}];"


def _prefix(fragment: Fragment) -> str:
    return f"{fragment.id}_"
