"""The rules of a recursion as generated functions: what rows derive, and what derives a row."""

from collections.abc import Callable
from dataclasses import dataclass

from stream_engine.recursion.program import Program
from stream_engine.recursion.ranked.entries import DEAD, GHOST, Entry
from stream_engine.recursion.ranked.expression_source import tuple_source
from stream_engine.recursion.ranked.groups import Group
from stream_engine.recursion.ranked.join_order import Nest, nest_from_atom, nest_from_head
from stream_engine.recursion.ranked.loop_source import LoopSource, Tables
from stream_engine.recursion.rules import RECURSIVE, Rule
from streamsql.algebra.operators import AggregateSelection
from streamsql.data.types import Row

Proof = tuple[Entry, ...]
Found = Callable[[tuple[Row, Proof]], None]
"""Takes a derived row that is not there (and, under selection, may be best) with its proof."""

Grow = Callable[[list[Entry], Found], None]
Support = Callable[[Row, int], Proof | None]
Regroup = Callable[[Row, Found], None]


@dataclass(frozen=True, slots=True)
class Derivations:
    """What the engines call.

    Attributes:
        base: Leaf number and function for every rule without recursion, from one of its leaves.
        leaf: Per leaf, functions that start with its entries.
        recursive: Functions that start with entries of the recursive relation.
        supports: Per rule, a function that finds one derivation of a row from live rows whose ranks
            are below a limit.
        regroups: Under selection, per rule a function that finds the derivations of a group's rows
            that may be best; the group is that of the given row.
    """

    base: tuple[tuple[int, Grow], ...]
    leaf: tuple[tuple[Grow, ...], ...]
    recursive: tuple[Grow, ...]
    supports: tuple[Support, ...]
    regroups: tuple[Regroup, ...]


def derivations_of(
    program: Program, tables: Tables, groups: dict[object, Group] | None
) -> Derivations:
    """Compile the rules of a program.

    Args:
        program: The recursion.
        tables: Empty tables by leaf number and RECURSIVE.
        groups: Under selection, the groups that have live rows, by key.

    Raises:
        UnsupportedError: A rule has too many atoms.
    """
    selection = program.selection

    def grow(rule: Rule, atom: int) -> Grow:
        return _grow(nest_from_atom(rule, atom), tables, selection, groups)

    def starting(relation: int) -> tuple[Grow, ...]:
        return tuple(
            grow(rule, atom)
            for rule in program.rules
            for atom, number in enumerate(rule.atoms)
            if number == relation
        )

    everything = tuple(range(program.width))
    base_first = sorted(program.rules, key=lambda rule: rule.is_step)
    return Derivations(
        base=tuple((rule.atoms[0], grow(rule, 0)) for rule in program.rules if not rule.is_step),
        leaf=tuple(starting(leaf) for leaf in range(len(program.uses))),
        recursive=starting(RECURSIVE),
        supports=tuple(_support(nest_from_head(rule, everything), tables) for rule in base_first),
        regroups=()
        if selection is None
        else tuple(
            _regroup(nest_from_head(rule, selection.group), tables, selection, groups)
            for rule in base_first
        ),
    )


def _grow(
    nest: Nest,
    tables: Tables,
    selection: AggregateSelection | None,
    groups: dict[object, Group] | None,
) -> Grow:
    source = LoopSource(nest, tables)
    source.expressions.names["limit"] = DEAD
    source.from_batch("batch, found")
    _report(source, nest, tables, selection, groups)
    return source.finish()


def _regroup(
    nest: Nest,
    tables: Tables,
    selection: AggregateSelection,
    groups: dict[object, Group] | None,
) -> Regroup:
    source = LoopSource(nest, tables)
    source.expressions.names["limit"] = DEAD
    source.from_head("h, found")
    _report(source, nest, tables, selection, groups)
    return source.finish()


def _support(nest: Nest, tables: Tables) -> Support:
    source = LoopSource(nest, tables)
    source.from_head("h, limit")
    source.line(f"return {source.proof}")
    return source.finish()


def _report(
    source: LoopSource,
    nest: Nest,
    tables: Tables,
    selection: AggregateSelection | None,
    groups: dict[object, Group] | None,
) -> None:
    """Write what happens to a derived row: it is reported unless it is there or cannot be best."""
    columns = range(len(nest.rule.head))
    values = {} if selection is None or groups is None else _select(source, selection, groups)
    row = tuple_source([values.get(position) or source.head(position) for position in columns])
    bind = source.expressions.bind
    source.line(f"row = {row}")
    get, ghost = bind("rows", tables[RECURSIVE].rows.get), bind("ghost", GHOST)
    source.block(f"if {get}(row, {ghost}).rank == limit:")
    source.line(f"found((row, {source.proof}))")


def _select(
    source: LoopSource, selection: AggregateSelection, groups: dict[object, Group]
) -> dict[int, str]:
    """Write the test whether a row may be best; return names of the values read for it."""
    names: dict[int, str] = {}
    for best in selection.bests:
        if best.value not in names:
            names[best.value] = name = source.expressions.temporary()
            source.line(f"{name} = {source.head(best.value)}")
    source.block(f"if {' or '.join(f'{name} is not None' for name in names.values())}:")
    keys = [source.head(position) for position in selection.group]
    key = keys[0] if len(keys) == 1 else tuple_source(keys)
    source.line(f"g = {source.expressions.bind('group', groups.get)}({key})")
    if len(selection.bests) == 1:
        (best,) = selection.bests
        test = f"{names[best.value]} {_comparison(best.minimum)} g.bests[0]"
    else:
        test = " or ".join(
            f"({names[best.value]} is not None and (g.bests[{number}] is None or"
            f" {names[best.value]} {_comparison(best.minimum)} g.bests[{number}]))"
            for number, best in enumerate(selection.bests)
        )
    source.block(f"if g is None or {test}:")
    return names


def _comparison(minimum: bool) -> str:
    return "<=" if minimum else ">="
