"""Leaf relations of a recursion: from Z-set changes to rows with tokens."""

from collections.abc import Callable, Iterable
from typing import Any

from stream_engine.provenance.annotation import AnnotationEncoding
from stream_engine.provenance.tokens import TokenSource
from stream_engine.recursion.program.item_tables import Item, ItemTable, values_at
from stream_engine.recursion.program.rules import LeafUse
from streamsql.algebra.expressions import conjunction
from streamsql.algebra.scalar_functions.scalar import compile_predicate
from streamsql.data.delta import Delta, add, switched
from streamsql.data.types import Row


class LeafInput:
    """Turns the changes of a leaf into rows that enter and rows that leave.

    The leaf is narrowed to what the recursion reads of it and made distinct: a row is there while
    its weight is positive. Opposite changes within one settle cancel out.

    State: the weight of every narrowed row.
    """

    def __init__(self, use: LeafUse) -> None:
        predicate = conjunction(list(use.filter))
        self._holds = None if predicate is None else compile_predicate(predicate)
        self._cut = _cutter(use.columns)
        self._weights: Delta = {}
        self._pending: Delta = {}

    def buffer(self, delta: Delta) -> None:
        """Note changes."""
        holds, cut, pending = self._holds, self._cut, self._pending
        for row, weight in delta.items():
            if holds is None or holds(row):
                add(pending, cut(row), weight)

    def take(self) -> tuple[list[Row], list[Row]]:
        """Apply what was noted; return the rows that entered and those that left."""
        pending, self._pending = self._pending, {}
        changed = switched(self._weights, pending)
        entered = [row for row, sign in changed.items() if sign > 0]
        return entered, [row for row, sign in changed.items() if sign < 0]


class LeafTable(ItemTable):
    """Leaf rows with their tokens; one row may have several, from several sites."""

    def __init__(self) -> None:
        super().__init__()
        self.by_token: dict[int, Item] = {}

    def enter(self, row: Row, token: int, annotation: Any) -> Item:
        """Add a row under a token that is not there."""
        item = self.by_token[token] = Item(row, annotation)
        self.add(item)
        return item

    def kill(self, token: int) -> None:
        """Remove the row of a token, if there is one."""
        item = self.by_token.pop(token, None)
        if item is not None:
            self.remove(item)

    def clear(self) -> None:
        """Drop everything."""
        super().clear()
        self.by_token = {}


Deliver = Callable[[int, Row, int, Any], None]
"""Takes leaf number, row, token and annotation of a new leaf row."""


Place = Callable[[int, list[tuple[int, Row]]], None]
"""Takes leaf number, and tokens with rows."""


class LeafStore:
    """The leaf rows a site knows: those that arrived here, and those that join here.

    Where one site computes the recursion alone, both are the same tables.

    Attributes:
        arrived: Per leaf, the rows that arrived here, with tokens of this site.
        joined: Per leaf, the rows that join here.
        fresh_arrived: Rows of `arrived` not used in rules yet; taken by the caller.
    """

    def __init__(
        self,
        uses: tuple[LeafUse, ...],
        tokens: TokenSource,
        encoding: AnnotationEncoding[Any],
        *,
        alone: bool,
    ) -> None:
        self._inputs = tuple(LeafInput(use) for use in uses)
        self._tokens = tokens
        self._token_of: tuple[dict[Row, int], ...] = tuple({} for _ in uses)
        self._encoding = encoding
        self._alone = alone
        self.arrived = tuple(LeafTable() for _ in uses)
        self.joined = self.arrived if alone else tuple(LeafTable() for _ in uses)
        self.fresh_arrived: list[list[Item]] = [[] for _ in uses]
        self.fresh_joined = self.fresh_arrived if alone else [[] for _ in uses]

    def buffer(self, leaf: int, delta: Delta) -> None:
        """Note changes of a leaf."""
        self._inputs[leaf].buffer(delta)

    def take_changes(self, place: Place, deliver: Deliver) -> set[int]:
        """Give tokens to rows that entered; return the tokens of rows that left.

        Args:
            place: Receives new tokens before there are annotations with them.
            deliver: Receives every new row, to send it where it joins.
        """
        dead: set[int] = set()
        for leaf, source in enumerate(self._inputs):
            entered, left = source.take()
            tokens = self._token_of[leaf]
            for row in left:
                dead.add(tokens.pop(row))
            new = [(self._tokens.fresh(), row) for row in entered]
            if new:
                place(leaf, new)
            for token, row in new:
                tokens[row] = token
                annotation = self._encoding.of_token(token)
                item = self.arrived[leaf].enter(row, token, annotation)
                self.fresh_arrived[leaf].append(item)
                if not self._alone:
                    deliver(leaf, row, token, annotation)
        return dead

    def join(self, leaf: int, row: Row, token: int, annotation: Any) -> None:
        """Let a row join here; one that does already is ignored."""
        if token not in self.joined[leaf].by_token:
            self.fresh_joined[leaf].append(self.joined[leaf].enter(row, token, annotation))

    def take_fresh(self) -> tuple[list[list[Item]], list[list[Item]]]:
        """Return new rows per leaf: those that arrived, and those that join here."""
        arrived, joined = self.fresh_arrived, self.fresh_joined
        self.fresh_arrived = [[] for _ in self._inputs]
        self.fresh_joined = self.fresh_arrived if self._alone else [[] for _ in self._inputs]
        return arrived, joined

    def kill(self, dead: Iterable[int]) -> None:
        """Remove the rows of dead tokens."""
        tables = self.arrived if self._alone else self.arrived + self.joined
        for token in dead:
            for table in tables:
                table.kill(token)

    def known_tokens(self) -> set[int]:
        """Return the tokens of all rows."""
        return {token for table in self.arrived + self.joined for token in table.by_token}

    def rewrite(self, rewritten: Callable[[Any], Any]) -> None:
        """Replace every annotation."""
        for table in self.arrived if self._alone else self.arrived + self.joined:
            for item in table.by_token.values():
                item.sent = rewritten(item.sent)

    def clear(self) -> None:
        """Drop everything."""
        for table in self.arrived + self.joined:
            table.clear()
        self._inputs = ()
        self._token_of = ()
        self.take_fresh()


def _cutter(columns: tuple[int, ...]) -> Any:
    if len(columns) == 1:
        (only,) = columns
        return lambda row: (row[only],)
    return values_at(columns)
