"""Relative provenance: annotations as derivation graphs, without absorption.

The annotation of a derived row is the set of rule firings (*edges*: row <- rows and tokens) that
lead to the row and to everything it rests on. Alternatives are never absorbed; two annotations of
a row are merged by union. When tokens die their edges go, and the least fixpoint from the live
tokens tells which rows are still derivable, so rows that only rest on each other in a circle fall.
A baseline for absorption provenance (Liu 2016, sections 3.3 and 3.7).

A row stands in the graph as 128 bits of its BLAKE2 digest: no two rows of any view that fits into
memory share one.

Wire form (varints): tokens as in `dnf`; number of rows, 16 bytes each; number of edges, then per
edge its row, the size of its body and its body; number of roots and the roots. Nodes are numbered,
tokens first.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import product
from typing import Final
from weakref import WeakValueDictionary

from stream_engine.provenance.annotation import AnnotationTooWideError, Support, least_supports
from stream_engine.provenance.tokens import (
    MAX_TOKEN,
    SEQUENCE_BITS,
    origin_of,
    sequence_of,
)
from stream_engine.provenance.varint import VarintReader, write_varint
from streamsql.data.types import Row, Value
from streamsql.errors import InternalError, WireError

MAX_WIRE_NODES = 200_000
MAX_WIRE_EDGES = 100_000
_DIGEST_BYTES = 16
_ROW = 1 << (8 * _DIGEST_BYTES)
"""Added to a row's digest, so that no row has the number of a token."""

_CACHED_ROWS = 65_536
_IMPOSSIBLE = -1
"""A node that nothing derives."""


class Edge:
    """A rule firing, equal ones once per encoding: the node of a row <- body nodes, ascending."""

    __slots__ = ("__weakref__", "body", "head", "tokens")

    def __init__(self, head: int, body: tuple[int, ...]) -> None:
        self.head = head
        self.body = body
        self.tokens = frozenset(node for node in body if node < _ROW)


@dataclass(frozen=True, slots=True)
class Derivations:
    """An annotation: a conjunction of nodes and how each of them can be derived.

    Attributes:
        roots: The nodes that must all hold; the row itself once it has a name.
        edges: Rule firings, all of which lead to a root.
        tokens: All tokens among the roots and in the edges.
    """

    roots: frozenset[int]
    edges: frozenset[Edge]
    tokens: frozenset[int]


_NO_EDGES: Final[frozenset[Edge]] = frozenset()
_NO_TOKENS: Final[frozenset[int]] = frozenset()


class RelativeEncoding:
    """The `relative` encoding; see `AnnotationEncoding`.

    Args:
        max_edges: Most edges of a disjunction.
    """

    false = Derivations(frozenset((_IMPOSSIBLE,)), _NO_EDGES, _NO_TOKENS)
    true = Derivations(frozenset(), _NO_EDGES, _NO_TOKENS)

    def __init__(self, max_edges: int = 2_048) -> None:
        self.max_edges = max_edges
        self._known: WeakValueDictionary[tuple[int, tuple[int, ...]], Edge] = WeakValueDictionary()

    def _edge(self, head: int, body: tuple[int, ...]) -> Edge:
        edge = self._known.get((head, body))
        if edge is None:
            edge = self._known[head, body] = Edge(head, body)
        return edge

    def of_token(self, token: int) -> Derivations:
        """Return the annotation of a base row."""
        node = frozenset((token,))
        return Derivations(node, _NO_EDGES, node)

    def conjoin(self, left: Derivations, right: Derivations) -> Derivations:
        """Return left AND right: all roots of both."""
        return Derivations(
            left.roots | right.roots, left.edges | right.edges, left.tokens | right.tokens
        )

    def derived(self, row: Row, body: Derivations) -> Derivations:
        """Return the annotation of a row that was derived from a conjunction."""
        head = row_node(row)
        edge = self._edge(head, tuple(sorted(body.roots)))
        return Derivations(frozenset((head,)), body.edges | {edge}, body.tokens | edge.tokens)

    def disjoin(self, left: Derivations, right: Derivations) -> Derivations:
        """Return left OR right, derivations of one row, unless it has more than `max_edges`."""
        if self.is_false(left) or left is right:
            return right
        if self.is_false(right):
            return left
        if left.roots != right.roots:
            raise InternalError("relative provenance: a disjunction of different rows")
        edges = left.edges | right.edges
        if len(edges) > max(self.max_edges, len(left.edges)):
            raise AnnotationTooWideError(left)
        return Derivations(left.roots, edges, left.tokens | right.tokens)

    def difference(self, new: Derivations, old: Derivations) -> Derivations:
        """Return `new`, or false when `old` has all of it.

        The edges that `old` lacks would not lead to the row on their own.
        """
        return self.false if self.implies(new, old) else new

    def restrict(self, annotation: Derivations, dead: Collection[int]) -> Derivations:
        """Return the annotation with tokens set to false; the same object if none occurs.

        Edges not derivable from live tokens are cut away, then edges that lead to no root.
        """
        if annotation.tokens.isdisjoint(dead):
            return annotation
        gone = annotation.tokens.intersection(dead)
        left = [edge for edge in annotation.edges if edge.tokens.isdisjoint(gone)]
        if not gone.isdisjoint(annotation.roots):
            return self.false
        return self._grounded(annotation.roots, left)

    def _grounded(self, roots: frozenset[int], edges: Collection[Edge]) -> Derivations:
        """Return the part of a graph that is derivable and leads to the roots."""
        possible = [edge for edge, _ in _derivable(edges)]
        by_head: dict[int, list[Edge]] = {}
        for edge in possible:
            by_head.setdefault(edge.head, []).append(edge)
        todo = [node for node in roots if node >= _ROW]
        if any(node not in by_head for node in todo):
            return self.false
        return _graph(roots, _leading_to(todo, by_head))

    def implies(self, left: Derivations, right: Derivations) -> bool:
        """Whether right has all derivations of left."""
        if left.edges or right.edges:
            return left.edges <= right.edges or self.is_false(left)
        return right.roots <= left.roots or self.is_false(left)

    def is_false(self, annotation: Derivations) -> bool:
        """Whether the row is not derivable."""
        return _IMPOSSIBLE in annotation.roots

    def witness(self, annotation: Derivations) -> Derivations:
        """Return the derivation with the fewest firings, counted as a tree (Knuth 1977)."""
        chosen: dict[int, list[Edge]] = {}
        for edge, _ in _derivable(annotation.edges):
            chosen.setdefault(edge.head, [edge])
        roots = [node for node in annotation.roots if node >= _ROW]
        return _graph(annotation.roots, _leading_to(roots, chosen))

    def tokens(self, annotation: Derivations) -> Iterable[int]:
        """Return all tokens that occur."""
        return annotation.tokens

    def supports(self, annotation: Derivations, limit: int) -> list[Support]:
        """Return minimal supports, smallest first; at most `limit`."""
        if self.is_false(annotation):
            return []
        found: dict[int, tuple[Support, ...]] = {}
        edges = [edge for edge, _ in _derivable(annotation.edges)]
        changed = True
        while changed:
            changed = False
            for edge in edges:
                old = found.get(edge.head, ())
                new = _fewest((*old, *_products(edge.body, found, limit)), limit)
                if new != old:
                    found[edge.head] = new
                    changed = True
        return list(_fewest(_products(tuple(annotation.roots), found, limit), limit))

    def size(self, annotation: Derivations) -> int:
        """Return the number of edges."""
        return len(annotation.edges)

    def encode(self, annotation: Derivations) -> bytes:
        """Return the wire form."""
        edges = sorted(annotation.edges, key=lambda edge: (edge.head, edge.body))
        tokens = annotation.tokens
        origins = sorted({origin_of(token) for token in tokens})
        at = {origin: number for number, origin in enumerate(origins)}
        numbers = {sequence_of(t) * len(origins) + at[origin_of(t)]: t for t in tokens}
        rows = sorted({edge.head for edge in edges})
        nodes = [numbers[number] for number in sorted(numbers)] + rows
        place = {node: number for number, node in enumerate(nodes)}
        out = bytearray()
        write_varint(out, len(origins))
        for origin in origins:
            write_varint(out, origin)
        write_varint(out, len(numbers))
        last = 0
        for number in sorted(numbers):
            write_varint(out, number - last)
            last = number
        write_varint(out, len(rows))
        for row in rows:
            out += (row - _ROW).to_bytes(_DIGEST_BYTES, "big")
        write_varint(out, len(edges))
        for edge in edges:
            write_varint(out, place[edge.head])
            _write_nodes(out, edge.body, place)
        _write_nodes(out, sorted(annotation.roots), place)
        return bytes(out)

    def decode(self, payload: bytes) -> Derivations:
        """Return the annotation in a wire form; WireError also if it is not derivable."""
        reader = VarintReader(payload)
        nodes = [*_read_tokens(reader)]
        first_row = len(nodes)
        nodes.extend(_row(reader) for _ in range(reader.read(MAX_WIRE_NODES)))
        edges: list[Edge] = []
        for _ in range(reader.read(MAX_WIRE_EDGES)):
            head = _node(reader, nodes)
            if head < _ROW:
                raise WireError("annotation: a token is not derived from anything")
            edges.append(self._edge(head, _read_nodes(reader, nodes)))
        roots = _read_nodes(reader, nodes)
        reader.finish()
        if len({*nodes}) != len(nodes) or any(node >= _ROW for node in nodes[:first_row]):
            raise WireError("annotation: a node is listed twice")
        annotation = self._grounded(frozenset(roots), edges)
        if self.is_false(annotation):
            raise WireError("annotation: a row that cannot be derived")
        return annotation

    def rewritten(self, annotation: Derivations) -> Derivations:
        """Return the annotation: there are no variables."""
        return annotation

    def release(self, dead: Collection[int]) -> None:
        """Do nothing: tokens stand for themselves, and edges go with what mentions them."""


@lru_cache(maxsize=_CACHED_ROWS)
def row_node(row: Row) -> int:
    """Return the node of a row; equal rows have the same one in every process.

    Examples:
        >>> row_node(("a", 1.0)) == row_node(("a", 1)) != row_node(("a", 2))
        True
    """
    text = "\x1f".join([repr(_plain(value)) for value in row])
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
    return _ROW + int.from_bytes(digest, "big")


def _plain(value: Value) -> Value:
    """Return one of all equal values: 1 for 1.0 and True, 0 for -0.0."""
    is_whole = isinstance(value, bool) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_whole and value is not None else value


def _graph(roots: frozenset[int], edges: Iterable[Edge]) -> Derivations:
    kept = frozenset(edges)
    tokens = frozenset(node for node in roots if 0 <= node < _ROW)
    return Derivations(roots, kept, tokens.union(*[edge.tokens for edge in kept]))


def _derivable(edges: Collection[Edge]) -> Iterator[tuple[Edge, int]]:
    """Yield the edges whose bodies are derivable from tokens, cheapest derivation first.

    The cost of a derivation is the number of firings in it as a tree, so the first edge yielded for
    a row belongs to its cheapest derivation, and no cycle is among first edges.
    """
    waiting: dict[int, list[Edge]] = {}
    missing: dict[Edge, int] = {}
    cost: dict[Edge, int] = {}
    heap: list[tuple[int, int, tuple[int, ...], Edge]] = []
    for edge in edges:
        rows = [node for node in edge.body if node >= _ROW]
        missing[edge], cost[edge] = len(rows), 1
        for node in rows:
            waiting.setdefault(node, []).append(edge)
        if not rows:
            heap.append((1, edge.head, edge.body, edge))
    heapq.heapify(heap)
    while heap:
        spent, head, _body, edge = heapq.heappop(heap)
        yield edge, spent
        for later in waiting.pop(head, ()):
            missing[later] -= 1
            cost[later] += spent
            if not missing[later]:
                heapq.heappush(heap, (cost[later], later.head, later.body, later))


def _leading_to(nodes: list[int], by_head: dict[int, list[Edge]]) -> list[Edge]:
    """Return the edges from which nodes can be reached."""
    found: list[Edge] = []
    seen = set(nodes)
    todo = list(nodes)
    while todo:
        for edge in by_head[todo.pop()]:
            found.append(edge)
            for node in edge.body:
                if node >= _ROW and node not in seen:
                    seen.add(node)
                    todo.append(node)
    return found


def _products(
    body: tuple[int, ...], found: dict[int, tuple[Support, ...]], limit: int
) -> tuple[Support, ...]:
    """Return supports of a conjunction, of the supports known by now."""
    partial: tuple[Support, ...] = (frozenset(),)
    for node in body:
        choices = found.get(node, ()) if node >= _ROW else (frozenset((node,)),)
        partial = _fewest((a | b for a, b in product(partial, choices)), limit)
    return partial


def _fewest(supports: Iterable[Support], limit: int) -> tuple[Support, ...]:
    least = least_supports(supports)
    return tuple(sorted(least, key=lambda support: (len(support), sorted(support)))[:limit])


def _write_nodes(out: bytearray, nodes: Collection[int], place: dict[int, int]) -> None:
    write_varint(out, len(nodes))
    for node in nodes:
        write_varint(out, place[node])


def _read_nodes(reader: VarintReader, nodes: list[int]) -> tuple[int, ...]:
    found = {_node(reader, nodes) for _ in range(reader.read(MAX_WIRE_NODES))}
    if not found:
        raise WireError("annotation: an empty conjunction would hold without any base row")
    return tuple(sorted(found))


def _row(reader: VarintReader) -> int:
    return _ROW + int.from_bytes(reader.take(_DIGEST_BYTES), "big")


def _node(reader: VarintReader, nodes: list[int]) -> int:
    if not nodes:
        raise WireError("annotation: a node that is not listed")
    return nodes[reader.read(len(nodes) - 1)]


def _read_tokens(reader: VarintReader) -> Iterator[int]:
    origins = [reader.read(origin_of(MAX_TOKEN)) for _ in range(reader.read(MAX_WIRE_NODES))]
    limit = (sequence_of(MAX_TOKEN) + 1) * len(origins) - 1
    number = 0
    for _ in range(reader.read(MAX_WIRE_NODES)):
        number += reader.read(max(limit, 0))
        if not origins or number > limit:
            raise WireError("annotation: a token has no origin or a sequence number too large")
        sequence, at = divmod(number, len(origins))
        yield origins[at] << SEQUENCE_BITS | sequence
