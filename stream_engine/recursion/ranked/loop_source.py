"""Nests as generated Python functions: one `for` per joined atom, nothing called per row.

Names in the source: e0, r0 are entry and row of atom 0; `h` is a head row of which columns are
given; `limit` is the rank that recursive rows must be below; `row` is a derived row.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stream_engine.recursion.program.rules import RECURSIVE
from stream_engine.recursion.ranked.join_order import Key, Loop, Nest
from stream_engine.recursion.ranked.ranked_entries import DEAD, GHOST, EntryTable, Part
from streamsql.algebra.expressions import Column, Expression, columns_of
from streamsql.algebra.scalar_functions.scalar import ExpressionSource, tuple_source
from streamsql.errors import UnsupportedError

MAX_LOOPS = 16
"""Python takes at most 100 levels of indentation."""

_LOOPS_PER_FUNCTION = 8
"""Python nests at most 20 blocks, and a loop over a parted table is two of them."""

_NO_ROWS: Part = {}


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups of a selection as an index.

    Attributes:
        entries: Where in a group the entries begin.
    """

    columns: tuple[int, ...]
    get: Callable[[object], Any]
    entries: int


class LoopSource:
    """Writes one generated function over a nest.

    Args:
        careful: Whether dead rows may be in the recursive table.

    Attributes:
        proof: Source of the derivation: the entries of all atoms.

    Raises:
        UnsupportedError: The rule has too many atoms.
    """

    def __init__(
        self,
        nest: Nest,
        tables: Mapping[int, EntryTable],
        grouping: Grouping | None,
        *,
        careful: bool,
    ) -> None:
        if len(nest.loops) > MAX_LOOPS:
            raise UnsupportedError(
                f"a branch of the recursion joins {len(nest.loops) + 1} relations; the max "
                f"of ranked maintenance is {MAX_LOOPS}",
                hint="choose WITH (strategy = 'absorption'), or join some of them in a view first",
            )
        self.expressions = ExpressionSource(self._place)
        self.head_width = len(nest.rule.head)
        self.proof = tuple_source([f"e{atom}" for atom in range(len(nest.rule.atoms))])
        self._nest = nest
        self._tables = tables
        self._grouping = grouping
        self._careful = careful
        self._lines: list[str] = []
        self._depth = 0
        self._known: set[int] = set()
        self._has_part = False
        self._inner: list[int] = []
        self._places = [
            f"r{atom}[{column}]"
            for atom, width in enumerate(nest.rule.widths)
            for column in range(width)
        ]

    def line(self, text: str) -> None:
        """Add a line at the present depth."""
        self._lines.append("    " * self._depth + text)

    def block(self, text: str) -> None:
        """Add a line that opens a block."""
        self.line(text)
        self._depth += 1

    def head(self, position: int) -> str:
        """Return the source of a column of the derived row."""
        return self.expressions.value(self._nest.rule.head[position])

    def part(self, heads: list[str]) -> str:
        """Return the source of the part of the recursive table in which the derived row belongs."""
        table = self._tables[RECURSIVE]
        if not table.primary:
            return self._bind("rows", table.parts[()])
        if self._has_part:
            return "part"
        return self._lookup_part(table, [heads[column] for column in table.primary])

    def found_entry(self, heads: list[str]) -> str:
        """Return the source of the derived row's entry, dead or not; a dead one where none is."""
        return f"{self.part(heads)}.get(row, {self._bind('ghost', GHOST)})"

    def from_batch(self, parameters: str) -> None:
        """Open a function that starts with a batch of entries of the nest's first atom."""
        start = self._nest.start
        if start is None:
            raise ValueError("the nest starts from a head")
        self.block(f"def run({parameters}):")
        self.block(f"for e{start} in batch:")
        self._joined(start, self._nest.predicates)
        self._loops()

    def from_head(self, parameters: str) -> None:
        """Open a function that starts with a head row `h` of which some columns are given."""
        self.block(f"def run({parameters}):")
        self._loops()
        for position in self._nest.unchecked:
            self.block(f"if {self.head(position)} == h[{position}]:")

    def finish(self) -> Callable[..., Any]:
        """Return the function."""
        while self._inner:
            self._depth = self._inner.pop()
            self.line(f"result = inner{self._depth}()")
            self.block("if result is not None:")
            self.line("return result")
        names: dict[str, Any] = dict(self.expressions.names)
        exec(compile(self.text, "<ranked loop>", "exec"), names)  # noqa: S102  (no text from outside)
        function: Callable[..., Any] = names["run"]
        return function

    @property
    def text(self) -> str:
        """The source so far."""
        return "\n".join(self._lines)

    def _loops(self) -> None:
        for number, loop in enumerate(self._nest.loops):
            if number and number % _LOOPS_PER_FUNCTION == 0:
                self._inner.append(self._depth)
                self.block(f"def inner{self._depth}():")
            self._loop(loop)

    def _loop(self, loop: Loop) -> None:
        table = self._tables[loop.relation]
        entry = f"e{loop.atom}"
        keys = [self._key(key) for key in loop.keys]
        columns = tuple(key.column for key in loop.keys)
        is_recursive = loop.relation == RECURSIVE
        if len(keys) == table.width:
            self._look_up(entry, table, keys)
            limit = "limit" if is_recursive else self._bind("dead", DEAD)
            self.block(f"if {entry}.rank < {limit}:")
        else:
            if is_recursive and self._grouping is not None and columns == self._grouping.columns:
                self.line(f"g = {self._bind('group', self._grouping.get)}({_key(keys)})")
                self.block("if g is not None:")
                self.block(f"for {entry} in g[{self._grouping.entries} :]:")
            elif not table.primary:
                self.block(f"for {entry} in {self._bind('rows', table.parts[()])}.values():")
            elif not keys:
                self.block(f"for p in {self._bind('parts', table.parts)}.values():")
                self.block(f"for {entry} in p.values():")
            elif columns == table.primary:
                self.block(f"for {entry} in {self._lookup_part(table, keys)}.values():")
            else:
                get = self._bind("bucket", table.index(columns).get)
                self.block(f"for {entry} in {get}({_key(keys)}, ()):")
            if is_recursive and self._careful:
                self.block(f"if {entry}.rank < limit:")
        self._joined(loop.atom, loop.predicates)

    def _look_up(self, entry: str, table: EntryTable, values: list[str]) -> None:
        ghost, row = self._bind("ghost", GHOST), tuple_source(values)
        if table.primary:
            part = self._lookup_part(table, [values[column] for column in table.primary])
        else:
            part = self._bind("rows", table.parts[()])
        self.line(f"{entry} = {part}.get({row}, {ghost})")

    def _lookup_part(self, table: EntryTable, keys: list[str]) -> str:
        get, nothing = self._bind("part_of", table.parts.get), self._bind("nothing", _NO_ROWS)
        return f"{get}({_key(keys)}, {nothing})"

    def _joined(self, atom: int, predicates: tuple[Expression, ...]) -> None:
        """Write what follows once an atom is joined."""
        self.line(f"r{atom} = e{atom}.row")
        for predicate in predicates:
            self.block(f"if {self.expressions.predicate(predicate)}:")
        rule, table = self._nest.rule, self._tables[RECURSIVE]
        offset = rule.offsets[atom]
        self._known.update(range(offset, offset + rule.widths[atom]))
        read = {p for column in table.primary for p in columns_of(rule.head[column])}
        is_grow = self._nest.start is not None
        if is_grow and table.primary and not self._has_part and read <= self._known:
            heads = [self.head(column) for column in table.primary]
            self.line(f"part = {self._lookup_part(table, heads)}")
            self._has_part = True

    def _key(self, key: Key) -> str:
        if isinstance(key.source, int):
            return f"h[{key.source}]"
        source = self.expressions.value(key.source)
        if not key.skips_null:
            return source
        if not isinstance(key.source, Column):
            name = self.expressions.temporary()
            self.line(f"{name} = {source}")
            source = name
        self.block(f"if {source} is not None:")
        return source

    def _place(self, position: int) -> str:
        return self._places[position]

    def _bind(self, prefix: str, value: Any) -> str:
        return self.expressions.bind(prefix, value)


def _key(keys: list[str]) -> str:
    return keys[0] if len(keys) == 1 else tuple_source(keys)
