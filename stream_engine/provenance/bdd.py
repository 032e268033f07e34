"""Annotations as reduced ordered binary decision diagrams (biodivine_aeon).

Canonical, so absorption costs nothing; compact where many supports share tokens, as when every
alternative is shipped eagerly. All annotations of a process share one fixed set of variables; a
token gets a variable when it first occurs and releases it when it is dead.

Wire form (varints): number of tokens, tokens in variable order; number of inner nodes, then per
node token index, low child, high child. Nodes 0 and 1 are the constants, a node refers to earlier
ones only, the last one is the root. The receiver rebuilds `token AND high OR low` bottom-up in its
own variable order: no bytes of a sender reach the library, and the result is always monotone.
"""

import struct
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import biodivine_aeon

from stream_engine.provenance.annotation import AnnotationTooWideError, Support, least_supports
from stream_engine.provenance.tokens import MAX_TOKEN
from stream_engine.provenance.varint import VarintReader, write_varint
from streamsql.errors import RecursionLimitError, WireError

Bdd = Any
"""A `biodivine_aeon.Bdd`; the library has no type annotations."""

VARIABLES = 60_000
MAX_WIRE_NODES = 100_000
_NODE = struct.Struct("<HII")
"""Variable, low child, high child of a node in the library's byte form; the root is last."""


@lru_cache(maxsize=1)
def _context() -> tuple[Any, list[Any]]:
    """Return the process-wide variable set and its variables (0.1 s, once)."""
    context = biodivine_aeon.BddVariableSet([f"v{i}" for i in range(VARIABLES)])
    return context, context.variable_ids()


class BddEncoding:
    """The `bdd` encoding; see `AnnotationEncoding`.

    Args:
        max_nodes: Most inner nodes of a disjunction.
    """

    def __init__(self, max_nodes: int = 2_000) -> None:
        self._context, self._ids = _context()
        self.max_nodes = max_nodes
        self.false: Bdd = self._context.mk_false()
        self.true: Bdd = self._context.mk_true()
        self._variable: dict[int, int] = {}
        self._token: dict[int, int] = {}
        self._free: list[int] = []
        self._top = 0
        self._before: dict[int, int] = {}

    def of_token(self, token: int) -> Bdd:
        """Return the annotation of a base row; RecursionLimitError without a free variable."""
        index = self._variable.get(token)
        if index is None:
            index = self._last_place()
            self._variable[token] = index
            self._token[index] = token
        return self._context.mk_literal(self._ids[index], True)

    def _last_place(self) -> int:
        if self._top < VARIABLES:
            self._top += 1
            return self._top - 1
        if not self._free:
            raise _too_many_tokens()
        return self._free.pop()

    def arrange(self, vector: Sequence[int]) -> bool:
        """Assign variables such that tokens are tested in the order of `vector`, others behind.

        Tokens that have variables keep them when they are in that order already and there is room
        between them for the new ones.

        Returns:
            Whether variables have changed: then `rewritten` must be applied to every annotation,
            once, before anything else is done with it.

        Raises:
            RecursionLimitError: There are more tokens than variables.
        """
        if self._fits_between(vector):
            return False
        if len(vector) > VARIABLES:
            raise _too_many_tokens()
        self._before = dict(self._token)
        chosen = dict.fromkeys(vector)
        others = sorted((t for t in self._variable if t not in chosen), key=self._variable.get)  # type: ignore[arg-type]
        order = [*vector, *others]
        # A quarter of the room stays free for tokens that come without a place.
        step = max(VARIABLES * 3 // 4 // (len(order) + 1), 1)
        self._variable = {token: number * step for number, token in enumerate(order)}
        self._token = {index: token for token, index in self._variable.items()}
        self._top = (len(order) - 1) * step + 1 if order else 0
        self._free = []
        return True

    def _fits_between(self, vector: Sequence[int]) -> bool:
        """Assign variables to the new tokens of a vector if the known ones need not move."""
        known = [self._variable[token] for token in vector if token in self._variable]
        if any(a >= b for a, b in pairwise(known)):
            return False
        places: dict[int, int] = {}
        last, waiting = -1, list[int]()
        for token in [*vector, None]:
            index = self._top if token is None else self._variable.get(token)
            if index is None:
                waiting.append(token)  # type: ignore[arg-type]
                continue
            if token is None:  # behind all others there is all the room that is left
                index = min(self._top + 8 * len(waiting) + 1, VARIABLES)
            room = index - last - 1
            if len(waiting) > room:
                return False
            for number, new in enumerate(waiting, start=1):
                places[new] = last + number * (room + 1) // (len(waiting) + 1)
            last, waiting = index, []
        taken = set(places.values())
        if len(taken) != len(places) or taken & self._token.keys():
            return False
        self._variable.update(places)
        self._token.update({index: token for token, index in places.items()})
        self._top = max(self._top, max(taken, default=-1) + 1)
        self._free = [index for index in self._free if index not in taken]
        return True

    def rewritten(self, annotation: Bdd) -> Bdd:
        """Return an annotation made before the last `arrange` in the current variables."""
        nodes = list(_NODE.iter_unpack(annotation.data_bytes()))[2:]
        if not nodes:
            return annotation
        built = [self.false, self.true]
        for variable, low, high in nodes:
            literal = self.of_token(self._before[variable])
            built.append(literal.l_and(built[high]).l_or(built[low]))
        return built[-1]

    def conjoin(self, left: Bdd, right: Bdd) -> Bdd:
        """Return left AND right."""
        return left.l_and(right)

    def disjoin(self, left: Bdd, right: Bdd) -> Bdd:
        """Return left OR right, unless it has more than `max_nodes` inner nodes."""
        try:
            return left.l_or(right, limit=self.max_nodes + 2)
        except InterruptedError:
            raise AnnotationTooWideError(left) from None

    def difference(self, new: Bdd, old: Bdd) -> Bdd:
        """Return `new`, or false when `old` absorbs it.

        `new AND NOT old` would not be monotone, and a later kill would make it wrong.
        """
        return self.false if new.implies(old) else new

    def restrict(self, annotation: Bdd, dead: Collection[int]) -> Bdd:
        """Return the annotation with tokens set to false; the same object if none occurs."""
        known = [self._ids[self._variable[t]] for t in dead if t in self._variable]
        known = [variable for variable in known if annotation.support_set_contains(variable)]
        if not known:
            return annotation
        return annotation.r_restrict(dict.fromkeys(known, False))

    def implies(self, left: Bdd, right: Bdd) -> bool:
        """Whether right absorbs left."""
        return bool(left.implies(right))

    def is_false(self, annotation: Bdd) -> bool:
        """Whether no support is left."""
        return bool(annotation.is_false())

    def witness(self, annotation: Bdd) -> Bdd:
        """Return one smallest support."""
        result = self.true
        for token in self.supports(annotation, 1)[0]:
            result = result.l_and(self.of_token(token))
        return result

    def tokens(self, annotation: Bdd) -> Iterable[int]:
        """Return all tokens that occur."""
        return [self._token[v.__index__()] for v in annotation.support_set()]

    def supports(self, annotation: Bdd, limit: int) -> list[Support]:
        """Return minimal supports, smallest first; at most `limit`."""
        nodes = self.nodes(annotation)
        best: list[list[Support]] = [[], [frozenset()]]
        for token, low, high in nodes:
            through = [support | {token} for support in best[high]]
            best.append(list(least_supports(best[low] + through)[:limit]))
        if not nodes:
            return [] if self.is_false(annotation) else [frozenset()]
        return sorted(best[-1], key=lambda s: (len(s), sorted(s)))

    def size(self, annotation: Bdd) -> int:
        """Return the number of inner nodes."""
        return max(int(annotation.node_count()) - 2, 0)

    def nodes(self, annotation: Bdd) -> list[tuple[int, int, int]]:
        """Return (token, low, high) of the inner nodes, which are numbered from 2, root last."""
        nodes = list(_NODE.iter_unpack(annotation.data_bytes()))[2:]
        return [(self._token[variable], low, high) for variable, low, high in nodes]

    def encode(self, annotation: Bdd) -> bytes:
        """Return the wire form."""
        nodes = self.nodes(annotation)
        tokens = sorted({token for token, _, _ in nodes}, key=self._variable.__getitem__)
        index = {token: i for i, token in enumerate(tokens)}
        out = bytearray()
        write_varint(out, len(tokens))
        for token in tokens:
            write_varint(out, token)
        write_varint(out, len(nodes))
        for token, low, high in nodes:
            write_varint(out, index[token])
            write_varint(out, low)
            write_varint(out, high)
        return bytes(out)

    def tokens_in(self, payload: bytes) -> list[int]:
        """Return the tokens of a wire form in the sender's variable order.

        Raises:
            WireError: They are malformed or too many.
        """
        return _read_tokens(VarintReader(payload))

    def decode(self, payload: bytes) -> Bdd:
        """Return the annotation in a wire form; an annotation without nodes is false."""
        reader = VarintReader(payload)
        tokens = _read_tokens(reader)
        built = [self.false, self.true]
        for number in range(reader.read(MAX_WIRE_NODES)):
            token = reader.read(len(tokens) - 1) if tokens else 0
            low, high = reader.read(number + 1), reader.read(number + 1)
            if not tokens or low == 1:
                raise WireError("annotation: a node without token, or that holds without any")
            node = self.of_token(tokens[token]).l_and(built[high])
            built.append(node.l_or(built[low]))
        reader.finish()
        return built[-1] if len(built) > 2 else self.false

    def release(self, dead: Collection[int]) -> None:
        """Release the variables of tokens that occur in no annotation any more."""
        for token in dead:
            index = self._variable.pop(token, None)
            if index is not None:
                del self._token[index]
                self._free.append(index)


def _read_tokens(reader: VarintReader) -> list[int]:
    return [reader.read(MAX_TOKEN) for _ in range(reader.read(MAX_WIRE_NODES))]


def _too_many_tokens() -> RecursionLimitError:
    return RecursionLimitError(
        f"a recursion with BDD annotations reads more than {VARIABLES} base rows",
        hint="choose the dnf encoding",
    )
