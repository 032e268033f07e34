"""Plans as graphs in Graphviz's DOT language: EXPLAIN (FORMAT DOT)."""

from collections.abc import Iterator

from streamsql.algebra.explain import describe, shown_inputs
from streamsql.algebra.operators import Plan

_HEAD = ("digraph plan {", "  rankdir=BT;", '  node [shape=box, fontname="sans-serif"];')
_LONGEST = 400


def plan_dot(plan: Plan) -> str:
    """Return a plan as a graph; rows flow along the arrows, upwards.

    Examples:
        >>> from streamsql.algebra.operators import Distinct, Scan, SourceKind
        >>> from streamsql.data.schema import Schema
        >>> print(plan_dot(Distinct(Scan("rooms", SourceKind.TABLE, Schema.of()))))
        digraph plan {
          rankdir=BT;
          node [shape=box, fontname="sans-serif"];
          n0 [label="Distinct"];
          n1 [label="Scan table rooms"];
          n1 -> n0;
        }
    """
    return graph(plan_statements(plan, "n"))


def graph(statements: Iterator[str]) -> str:
    """Return a whole graph of nodes, edges and clusters."""
    return "\n".join((*_HEAD, *(f"  {line}" for line in statements), "}"))


def plan_statements(plan: Plan, prefix: str) -> Iterator[str]:
    """Yield nodes and edges of a plan; nodes are numbered from the result on, inputs in order.

    Args:
        plan: Its root is the node `{prefix}0`.
        prefix: Of the names of its nodes.
    """
    for name, node, above, role in numbered(plan, prefix):
        yield f"{name} [label={quoted(describe(node))}];"
        if above:
            label = f" [label={quoted(role)}]" if role else ""
            yield f"{name} -> {above}{label};"


def numbered(plan: Plan, prefix: str) -> list[tuple[str, Plan, str, str]]:
    """Return every operator with its name in the graph, what it feeds, and as what."""
    found: list[tuple[str, Plan, str, str]] = []

    def add(node: Plan, above: str, role: str) -> None:
        name = f"{prefix}{len(found)}"
        found.append((name, node, above, role))
        for below, child in shown_inputs(node):
            add(child, name, below)

    add(plan, "", "")
    return found


def quoted(text: str) -> str:
    """Return a text as DOT writes it, not longer than a reader can read."""
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    escaped = cut.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
