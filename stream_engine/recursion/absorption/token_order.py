"""Keeps the variables of a recursion's decision diagrams in the order of its network."""

from collections.abc import Iterable

from stream_engine.provenance.bdd import BddEncoding
from stream_engine.provenance.variable_order import Edge, VariableOrder, order_named
from stream_engine.recursion.program.item_tables import Key, values_at
from stream_engine.recursion.program.placement import recursive_keys
from stream_engine.recursion.program.rules import RECURSIVE, Rule
from streamsql.algebra.expressions import Column
from streamsql.data.types import Row

_MOVED_SHARE = 4


class TokenOrder:
    """Orders the tokens of leaf rows as links from head columns to join-key columns.

    Moving a token means to rewrite all diagrams, so moves are put off until a quarter of the tokens
    would move. New tokens are placed at once, which moves nothing.

    State: the vector of the labeller, and the one in effect.

    Args:
        name: Of the order: "dfs", "arrival" or "rebuild".
    """

    def __init__(
        self, name: str, rules: tuple[Rule, ...], leaf_count: int, encoding: BddEncoding
    ) -> None:
        self._encoding = encoding
        self._labeller: VariableOrder = order_named(name)
        self._edges = [_edge_keys(rules, leaf) for leaf in range(leaf_count)]
        self._known: set[int] = set()
        self._in_effect: list[int] = []

    def place(self, leaf: int, rows: Iterable[tuple[int, Row]]) -> bool:
        """Place the tokens of new rows of a leaf.

        Returns:
            Whether variables have changed: all annotations have to be rewritten now.
        """
        keys = self._edges[leaf]
        for token, row in rows:
            if token not in self._known:
                edge = None if keys is None else Edge(keys[0](row), keys[1](row))
                self._labeller.insert(token, edge)
                self._enter(token)
        return self._arrange()

    def follow(self, payloads: Iterable[bytes]) -> bool:
        """Place the unknown tokens of annotations from another site as that site has them.

        Returns:
            As `place`.

        Raises:
            WireError: An annotation is malformed.
        """
        for payload in payloads:
            last: int | None = None
            for token in self._encoding.tokens_in(payload):
                if token not in self._known:
                    self._labeller.follow(token, last)
                    self._enter(token)
                last = token
        return self._arrange()

    def forget(self, tokens: Iterable[int]) -> None:
        """Discard tokens that occur in no annotation any more."""
        gone = self._known.intersection(tokens)
        for token in gone:
            self._labeller.delete(token)
        self._known -= gone
        self._in_effect = [token for token in self._in_effect if token not in gone]

    def _enter(self, token: int) -> None:
        self._known.add(token)
        vector = self._labeller.vector
        at = vector.index(token)
        before = self._in_effect.index(vector[at - 1]) + 1 if at else 0
        self._in_effect.insert(before, token)

    def _arrange(self) -> bool:
        if self._labeller.moved > len(self._known) // _MOVED_SHARE + 8:
            self._labeller.moved = 0
            self._in_effect = list(self._labeller.vector)
        return self._encoding.arrange(self._in_effect)


def _edge_keys(rules: tuple[Rule, ...], leaf: int) -> tuple[Key, Key] | None:
    """Return how to read the two ends of a link from a leaf's row, if it joins like one."""
    for rule in rules:
        if RECURSIVE not in rule.atoms:
            continue
        for atom, number in enumerate(rule.atoms):
            keys = recursive_keys(rule, atom) if number == leaf else {}
            span = range(rule.offsets[atom], rule.offsets[atom] + rule.widths[atom])
            ends = [
                (head.position - span.start, keys[column])
                for column, head in enumerate(rule.head)
                if column in keys and isinstance(head, Column) and head.position in span
            ]
            if ends:
                sources, targets = zip(*ends, strict=True)
                return values_at(tuple(sources)), values_at(tuple(targets))
    return None
