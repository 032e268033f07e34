"""EXPLAIN of a bundle: fragments with engine, sites, what was pushed, and why the rest was not."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from federated_optimizer.costs.recursion_prices import TRUST, rounded
from federated_optimizer.cutting.fragment_methods import method_of
from streamsql.algebra.explain import describe, plan_lines
from streamsql.algebra.expressions import conjuncts, expression_text
from streamsql.algebra.operators import (
    Aggregate,
    Filter,
    Fixpoint,
    Materialize,
    Plan,
    Project,
    RecursiveReference,
    RemoteSource,
    Scan,
    UnionAll,
    Values,
)
from streamsql.algebra.plan_graph import graph, numbered, plan_statements, quoted
from streamsql.algebra.source_groups import source_groups
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle, RecursionPlan

SCHEMA_VERSION = 1
"""Of the data, docs/schemas/explain.json: it grows with every change that a reader may notice."""

READ = "read from another run, not run again"
"""In the place of sites, and of a method: rows of a fragment that runs anyway."""

NO_RATES: Mapping[str, str] = {}


def explain_bundle(bundle: FragmentBundle) -> str:
    """Return the bundle as text: what runs for it, and what it reads of other runs."""
    lines = [line for f in bundle.own for line in fragment_lines(f, bundle)]
    lines.extend(line for f in bundle.fed for line in fed_lines(f, bundle))
    lines.extend(line for r in bundle.recursions for line in recursion_lines(r))
    return "\n".join(lines)


def bundle_dot(bundle: FragmentBundle, rates: Mapping[str, str] = NO_RATES) -> str:
    """Return the bundle as a graph in DOT; `rates` is what fragments send, in words, by id."""
    return graph(_graph_statements(bundle, rates))


def _graph_statements(bundle: FragmentBundle, rates: Mapping[str, str]) -> Iterator[str]:
    """Yield a cluster per fragment, and what travels between them, in DOT."""
    doors = {
        (fragment.id, node.fragment): name
        for fragment in bundle.own
        for name, node, _, _ in numbered(fragment.plan, _graph_prefix(fragment))
        if isinstance(node, RemoteSource)
    }
    for fragment in (*bundle.own, *bundle.fed):
        sites = ", ".join(fragment.sites) or "no site offers its sources"
        computed = READ if fragment in bundle.fed else f"{fragment.engine.upper()}: {sites}"
        yield f"subgraph {quoted(f'cluster_{fragment.id}')} {{"
        yield f"  label={quoted(f'{fragment.id} {computed}')};"
        for line in plan_statements(fragment.plan, _graph_prefix(fragment)):
            yield f"  {line}"
        yield "}"
    yield 'result [shape=oval, label="result"];'
    for fragment in (*bundle.own, *bundle.fed):
        root = f"{_graph_prefix(fragment)}0"
        rate = rates.get(fragment.id, "")
        if not fragment.consumer:
            label = f", label={quoted(rate)}" if rate else ""
            yield f"{root} -> result [style=bold{label}];"
            continue
        where = ", ".join(fragment.destinations)
        label = quoted("\n".join(filter(None, (f"to {where}", rate))))
        also = quoted("the same rows")
        for place, reader in enumerate(dict.fromkeys(bundle.readers(fragment.id))):
            door = doors[reader, fragment.id]
            yield f"{root} -> {door} [style=bold, label={also if place else label}];"


def _graph_prefix(fragment: Fragment) -> str:
    return f"{fragment.id}_"


def fragment_lines(fragment: Fragment, bundle: FragmentBundle) -> list[str]:
    """Return the text of one fragment."""
    readers = bundle.readers(fragment.id)
    lines = [_heading(fragment, tuple(dict.fromkeys(readers)))]
    lines.extend("  " + line for line in plan_lines(fragment.plan))
    if fragment.homes and not fragment.partition:
        lines.append(
            f"  co-located: rows of {len(fragment.homes)} link ends, at the sites of these ends"
        )
    parts = pushed(fragment)
    if parts:
        to = " to the database" if fragment.engine == Engine.STATIC else ""
        lines.append(f"  pushed{to}: " + ", ".join(parts))
    parts = over_tables(fragment)
    if parts:
        lines.append("  computed by the static engine: " + ", ".join(parts))
    if len(readers) > 1:
        lines.append(f"  read {_times(len(readers))}: its rows are sent once")
    lines.extend("  not pushed: " + reason for reason in fragment.reasons)
    lines.extend("  " + note for note in fragment.notes)
    return lines


def fed_lines(fragment: Fragment, bundle: FragmentBundle) -> list[str]:
    """Return the text of a fragment that runs for another bundle, with what its rows are."""
    readers = tuple(dict.fromkeys(bundle.readers(fragment.id)))
    heading = f"Fragment {fragment.id} [{READ}]{_route(fragment, readers)}"
    return [heading, *("  " + line for line in plan_lines(fragment.plan))]


def recursion_lines(recursion: RecursionPlan) -> list[str]:
    """Return the text of how a recursion is computed: what each way costs, which, and why."""
    where = ", ".join(recursion.sites)
    lines = [
        f"Recursion {recursion.name}: way {recursion.way} at {where}, because {recursion.why}",
        f"  {'way':<12}{'bytes/s':>14}{'ms':>8}  computed at",
    ]
    for price in recursion.prices:
        mark = "  <- taken" if price.way == recursion.way else ""
        lines.append(
            f"  {price.way:<12}{_about(price.bytes_per_second):>14}{price.milliseconds:>8.0f}"
            f"  {price.where}{mark}"
        )
    if recursion.kept:
        lines.append(f"  kept by {recursion.kept}")
    if recursion.without:
        lines.append(f"  without {', '.join(recursion.without)}: offline for too long")
    if recursion.measured:
        lines.append(f"  rates: measured while the query ran; bytes/s within a factor of {TRUST}")
    elif recursion.prices:
        lines.append(
            "  bytes/s: only the order is reliable; this recursion has no measurements yet"
        )
    if recursion.assumed:
        lines.append("  assumed: " + "; ".join(recursion.assumed))
    return lines


def _about(price: float) -> str:
    return f"~{rounded(price):,}" if price >= 1 else "<1"


def bundle_data(bundle: FragmentBundle) -> dict[str, Any]:
    """Return the bundle as plain data."""
    return {
        "version": SCHEMA_VERSION,
        "query": bundle.query,
        "plan_version": bundle.version,
        "emit": bundle.emit,
        "columns": [{"name": f.name, "type": str(f.dtype)} for f in bundle.schema.fields],
        "fragments": [_fragment_data(fragment, bundle) for fragment in bundle.fragments],
        "recursions": [msgspec.to_builtins(recursion) for recursion in bundle.recursions],
    }


def pushed(fragment: Fragment) -> list[str]:
    """Return what runs where the rows are, beyond shipping them: at the gateways, in databases."""
    match fragment.engine:
        case Engine.GATEWAY:
            return _parts_of(_computed(fragment.plan, set()))
        case Engine.STATIC:
            nodes = [*_computed(fragment.plan, set())]
            groups = [node for node in nodes if _is_grouped(node, fragment)]
            return _parts_of(below for node in groups for below in _computed(node, set()))
        case Engine.BASE:
            return []


def over_tables(fragment: Fragment) -> list[str]:
    """Return what the static engine computes; a table may be read in part."""
    if fragment.engine != Engine.STATIC:
        return []
    return _parts_of(_computed(fragment.plan, set(), lambda node: _is_grouped(node, fragment)))


def _is_grouped(plan: Plan, fragment: Fragment) -> bool:
    """A table's database computes an aggregate and all below it."""
    groups = source_groups(plan) if isinstance(plan, Aggregate) else None
    if groups is None:
        return False
    compared = dict(fragment.grouped).get(groups.scan.source)
    return compared is not None and groups.columns <= set(compared)


def _parts_of(plans: Iterable[Plan]) -> list[str]:
    return [part for node in plans for part in _pushed_parts(node)]


def _computed(
    plan: Plan, seen: set[Plan], is_elsewhere: Callable[[Plan], bool] = lambda _plan: False
) -> Iterator[Plan]:
    """Yield the operators of a plan, those of a materialized table once."""
    if is_elsewhere(plan):
        return
    if isinstance(plan, Materialize):
        if plan in seen:
            return
        seen.add(plan)
    yield plan
    for child in plan.inputs:
        yield from _computed(child, seen, is_elsewhere)


def _pushed_parts(plan: Plan) -> list[str]:
    match plan:
        case Filter(predicate=predicate):
            return [f"[{expression_text(p)}]" for p in conjuncts(predicate)]
        case Scan() | RemoteSource() | RecursiveReference() | Values() | Project() | UnionAll():
            return []
        case Fixpoint() | Materialize():
            return []
        case _:
            return [describe(plan)]


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


def _heading(fragment: Fragment, readers: tuple[str, ...]) -> str:
    count = len(fragment.sites)
    engine = fragment.engine.upper()
    where = f"{engine} x {count}" if count > 1 else engine
    sites = ", ".join(fragment.sites) or "no site offers its sources"
    return f"Fragment {fragment.id} [{where}: {sites}]{_route(fragment, readers)}"


def _route(fragment: Fragment, readers: tuple[str, ...]) -> str:
    if not fragment.consumer:
        return " -> result"
    names = fragment.plan.schema.names
    if fragment.partition:
        columns = ", ".join(names[p] for p in fragment.partition)
        homes = f"the gateways chosen for {len(fragment.homes)} values, else "
        by = f" by {homes if fragment.homes else ''}hash of ({columns})"
    else:
        by = ""
    return f" -> {', '.join(readers)} at {', '.join(fragment.destinations)}{by}"


def _fragment_data(fragment: Fragment, bundle: FragmentBundle) -> dict[str, Any]:
    names = fragment.plan.schema.names
    return {
        "id": fragment.id,
        "engine": str(fragment.engine),
        "method": method_of(fragment, bundle),
        "sites": list(fragment.sites),
        "consumer": fragment.consumer or None,
        "readers": list(dict.fromkeys(bundle.readers(fragment.id))),
        "destinations": list(fragment.destinations),
        "partition": [names[p] for p in fragment.partition],
        "columns": list(names),
        "plan": _plan_data(fragment.plan),
        "pushed": pushed(fragment),
        "over_tables": over_tables(fragment),
        "not_pushed": list(fragment.reasons),
        "notes": list(fragment.notes),
        "homes": len(fragment.homes),
    }


def _plan_data(plan: Plan) -> dict[str, Any]:
    return {
        "operator": type(plan).__name__,
        "text": describe(plan),
        "inputs": [_plan_data(child) for child in plan.inputs],
    }
