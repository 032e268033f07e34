"""Nests as generated Python functions: one `for` per joined atom, nothing called per row.

Names in the source: e0, r0 are entry and row of atom 0; `h` is a head row; `limit` is the rank that
recursive rows must be below.
"""

from collections.abc import Callable, Mapping
from typing import Any

from stream_engine.recursion.ranked.entries import DEAD, GHOST, EntryTable
from stream_engine.recursion.ranked.expression_source import ExpressionSource, tuple_source
from stream_engine.recursion.ranked.join_order import Key, Loop, Nest
from stream_engine.recursion.rules import RECURSIVE
from streamsql.algebra.expressions import Column, Expression
from streamsql.errors import UnsupportedError

MAX_LOOPS = 16
"""Python nests at most 20 blocks."""

Tables = Mapping[int, EntryTable]
"""By leaf number or RECURSIVE."""


class LoopSource:
    """Writes one generated function over a nest.

    Args:
        nest: What to loop over.
        tables: The rows of every atom.

    Attributes:
        expressions: Writes and binds expressions of this function.

    Raises:
        UnsupportedError: The rule has too many atoms.
    """

    def __init__(self, nest: Nest, tables: Tables) -> None:
        if len(nest.loops) > MAX_LOOPS:
            raise UnsupportedError(
                f"a branch of the recursion joins {len(nest.loops) + 1} relations;"
                f" ranked maintenance takes {MAX_LOOPS}",
                hint="WITH (strategy = 'absorption'), or join some of them in a view first",
            )
        self.expressions = ExpressionSource(self._place)
        self._nest = nest
        self._tables = tables
        self._lines: list[str] = []
        self._depth = 0
        self._places = [
            f"r{atom}[{column}]"
            for atom, width in enumerate(nest.rule.widths)
            for column in range(width)
        ]
        self.proof = tuple_source([f"e{atom}" for atom in range(len(nest.rule.atoms))])

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

    def from_batch(self, parameters: str) -> None:
        """Open a function that starts with a batch of entries of the nest's first atom."""
        self.block(f"def run({parameters}):")
        start = self._nest.start
        self.block(f"for e{start} in batch:")
        self.line(f"r{start} = e{start}.row")
        self._require(self._nest.predicates)
        self._loops()

    def from_head(self, parameters: str) -> None:
        """Open a function that starts with a head row `h` of which some columns are given."""
        self.block(f"def run({parameters}):")
        self._loops()
        for position in self._nest.unchecked:
            self.block(f"if {self.head(position)} == h[{position}]:")

    def finish(self) -> Callable[..., Any]:
        """Return the function."""
        names: dict[str, Any] = dict(self.expressions.names)
        exec(compile("\n".join(self._lines), "<ranked loop>", "exec"), names)  # noqa: S102
        function: Callable[..., Any] = names["run"]
        return function

    @property
    def text(self) -> str:
        """The source so far."""
        return "\n".join(self._lines)

    def _place(self, position: int) -> str:
        return self._places[position]

    def _require(self, predicates: tuple[Expression, ...]) -> None:
        for predicate in predicates:
            self.block(f"if {self.expressions.predicate(predicate)}:")

    def _loops(self) -> None:
        for loop in self._nest.loops:
            self._loop(loop)

    def _loop(self, loop: Loop) -> None:
        table = self._tables[loop.relation]
        entry = f"e{loop.atom}"
        keys = [self._key(key) for key in loop.keys]
        is_recursive = loop.relation == RECURSIVE
        if len(keys) == table.width:
            get = self._bind("rows", table.rows.get)
            self.line(f"{entry} = {get}({tuple_source(keys)}, {self._bind('ghost', GHOST)})")
            limit = "limit" if is_recursive else self._bind("dead", DEAD)
            self.block(f"if {entry}.rank < {limit}:")
        else:
            if keys:
                get = self._bind("bucket", table.index(tuple(k.column for k in loop.keys)).get)
                key = keys[0] if len(keys) == 1 else tuple_source(keys)
                self.block(f"for {entry} in {get}({key}, ()):")
            else:
                self.block(f"for {entry} in {self._bind('all_rows', table.rows.values)}():")
            if is_recursive:
                self.block(f"if {entry}.rank < limit:")
        self.line(f"r{loop.atom} = {entry}.row")
        self._require(loop.predicates)

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

    def _bind(self, prefix: str, value: Any) -> str:
        return self.expressions.bind(prefix, value)
