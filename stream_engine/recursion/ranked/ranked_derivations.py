"""The rules of a recursion as generated functions: what rows derive, and what derives a row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stream_engine.recursion.program.program import Program
from stream_engine.recursion.program.rules import RECURSIVE
from stream_engine.recursion.ranked.join_order import Nest, nest_from_atom, nest_from_head
from stream_engine.recursion.ranked.loop_source import Grouping, LoopSource
from stream_engine.recursion.ranked.ranked_entries import DEAD, Candidate, Entry, EntryTable, Groups
from streamsql.algebra.operators import AggregateSelection
from streamsql.algebra.scalar_functions.scalar import tuple_source
from streamsql.data.types import Row

Proof = tuple[Entry, ...]
Found = Callable[[Candidate], None]
"""Takes a derived row that is not there (and, under selection, may be best) with its proof."""

Grow = Callable[[list[Entry], Found], None]
Support = Callable[[Row, int], Proof | None]
Regroup = Callable[[Row, Found], None]


@dataclass(frozen=True, slots=True)
class Growth:
    """What new rows derive."""

    leaf: tuple[tuple[Grow, ...], ...]
    recursive: tuple[Grow, ...]


@dataclass(frozen=True, slots=True)
class Derivations:
    """What the engines call.

    Attributes:
        base: Leaf number and function for every rule without recursion, from one of its leaves.
        quick: For as long as there is no dead row in the tables.
        careful: The same for when there is.
        supports: Per rule, a function that finds one derivation of a row from live rows whose ranks
            are below a limit.
        regroups: Under selection, per rule a function that finds the derivations of a group's rows
            that may be best; the group is that of the given row.
    """

    base: tuple[tuple[int, Grow], ...]
    quick: Growth
    careful: Growth
    supports: tuple[Support, ...]
    regroups: tuple[Regroup, ...]


@dataclass(frozen=True, slots=True)
class Nests:
    """The rules of a program in all the joining orders that are needed."""

    base: tuple[Nest, ...]
    leaf: tuple[tuple[Nest, ...], ...]
    recursive: tuple[Nest, ...]
    supports: tuple[Nest, ...]
    regroups: tuple[Nest, ...]

    def indexes(self, group: tuple[int, ...] | None) -> dict[int, list[tuple[int, ...]]]:
        """Return by which columns every relation is looked up, most welcome primary ones first.

        Args:
            group: Columns by which the recursive relation needs no index.
        """
        found: dict[int, list[tuple[int, ...]]] = {}
        by_leaf = [nest for nests in self.leaf for nest in nests]
        for nest in (*by_leaf, *self.recursive, *self.supports, *self.regroups):
            for loop in nest.loops:
                columns = tuple(key.column for key in loop.keys)
                wanted = found.setdefault(loop.relation, [])
                is_part = 0 < len(columns) < nest.rule.widths[loop.atom]
                is_group = loop.relation == RECURSIVE and columns == group
                if is_part and not is_group and columns not in wanted:
                    wanted.append(columns)
        return found


def nests_of(program: Program) -> Nests:
    """Order the joins of a program."""
    rules, selection = program.rules, program.selection

    def starting(relation: int) -> tuple[Nest, ...]:
        return tuple(
            nest_from_atom(rule, atom)
            for rule in rules
            for atom, number in enumerate(rule.atoms)
            if number == relation
        )

    everything = tuple(range(program.width))
    base_first = sorted(rules, key=lambda rule: rule.is_step)
    return Nests(
        base=tuple(nest_from_atom(rule, 0) for rule in rules if not rule.is_step),
        leaf=tuple(starting(leaf) for leaf in range(len(program.uses))),
        recursive=starting(RECURSIVE),
        supports=tuple(nest_from_head(rule, everything) for rule in base_first),
        regroups=tuple(
            nest_from_head(rule, selection.group) for rule in base_first if selection is not None
        ),
    )


@dataclass(frozen=True, slots=True)
class Compiler:
    """Turns nests into functions.

    Attributes:
        tables: Empty tables by leaf number and RECURSIVE.
        groups: Under selection, the groups that have live rows, by key.
    """

    tables: Mapping[int, EntryTable]
    selection: AggregateSelection | None = None
    groups: Groups | None = None

    def derivations(self, nests: Nests) -> Derivations:
        """Return the functions."""
        return Derivations(
            base=tuple(
                (nest.rule.atoms[0], self._grow(nest, careful=False)) for nest in nests.base
            ),
            quick=self._growth(nests, careful=False),
            careful=self._growth(nests, careful=True),
            supports=tuple(map(self._support, nests.supports)),
            regroups=tuple(map(self._regroup, nests.regroups)),
        )

    def _growth(self, nests: Nests, *, careful: bool) -> Growth:
        return Growth(
            tuple(tuple(self._grow(nest, careful=careful) for nest in leaf) for leaf in nests.leaf),
            tuple(self._grow(nest, careful=careful) for nest in nests.recursive),
        )

    def _source(self, nest: Nest, *, careful: bool) -> LoopSource:
        grouping = None
        if self.selection is not None and self.groups is not None:
            entries = len(self.selection.bests)
            grouping = Grouping(self.selection.group, self.groups.get, entries)
        return LoopSource(nest, self.tables, grouping, careful=careful)

    def _grow(self, nest: Nest, *, careful: bool) -> Grow:
        source = self._source(nest, careful=careful)
        source.expressions.names["limit"] = DEAD
        source.from_batch("batch, found")
        self._report(source, careful=careful)
        return source.finish()

    def _regroup(self, nest: Nest) -> Regroup:
        source = self._source(nest, careful=True)
        source.expressions.names["limit"] = DEAD
        source.from_head("h, found")
        self._report(source, careful=True)
        return source.finish()

    def _support(self, nest: Nest) -> Support:
        source = self._source(nest, careful=True)
        source.from_head("h, limit")
        source.line(f"return {source.proof}")
        return source.finish()

    def _report(self, source: LoopSource, *, careful: bool) -> None:
        """Write what happens to a derived row: it counts unless it is there or cannot be best."""
        values: dict[int, str] = {}
        if self.selection is not None and self.groups is not None:
            values = _select(source, self.selection, self.groups)
        heads = [
            values.get(position) or source.head(position) for position in range(source.head_width)
        ]
        source.line(f"row = {tuple_source(heads)}")
        if careful:
            source.block(f"if {source.found_entry(heads)}.rank == limit:")
        else:
            source.block(f"if row not in {source.part(heads)}:")
        source.line(f"found((row, {source.proof}))")


def _select(source: LoopSource, selection: AggregateSelection, groups: Groups) -> dict[int, str]:
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
        test = f"{names[best.value]} {_comparison(best.minimum)} g[0]"
    else:
        test = " or ".join(
            f"({names[best.value]} is not None and (g[{number}] is None or"
            f" {names[best.value]} {_comparison(best.minimum)} g[{number}]))"
            for number, best in enumerate(selection.bests)
        )
    source.block(f"if g is None or {test}:")
    return names


def _comparison(minimum: bool) -> str:
    return "<=" if minimum else ">="
