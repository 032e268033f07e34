"""Annotations as antichains of supports: disjunctive normal form under absorption.

An annotation is a tuple of frozensets of tokens, none containing another. Order-free, and the best
encoding for witnesses, which are mostly one short conjunction.

Wire form (varints): number of origins, origins; number of supports; per support its number of
tokens, then per token `sequence * origins + origin index`, ascending, as differences.
"""

from collections.abc import Collection, Iterable

from stream_engine.provenance.annotation import AnnotationTooWideError, Support, least_supports
from stream_engine.provenance.tokens import SEQUENCE_BITS, origin_of, sequence_of
from stream_engine.provenance.varint import VarintReader, write_varint
from streamsql.errors import WireError

Dnf = tuple[Support, ...]

MAX_WIRE_SUPPORTS = 2_000
MAX_WIRE_TOKENS = 200_000
_MAX_ORIGIN = (1 << (64 - SEQUENCE_BITS)) - 1


class DnfEncoding:
    """The `dnf` encoding; see `AnnotationEncoding`.

    Args:
        width: Most supports of a disjunction.
    """

    false: Dnf = ()
    true: Dnf = (frozenset(),)

    def __init__(self, width: int = 64) -> None:
        self.width = width

    def of_token(self, token: int) -> Dnf:
        """Return the annotation of a base row."""
        return (frozenset((token,)),)

    def conjoin(self, left: Dnf, right: Dnf) -> Dnf:
        """Return left AND right."""
        if len(left) == 1 and len(right) == 1:
            return (left[0] | right[0],)
        return least_supports(a | b for a in left for b in right)

    def disjoin(self, left: Dnf, right: Dnf) -> Dnf:
        """Return left OR right, unless it has more than `width` supports."""
        result = list(left)
        for new in right:
            for old in result:
                if old <= new:
                    break
            else:
                result = [old for old in result if not new <= old]
                result.append(new)
        if len(result) > self.width:
            self._refuse(left, result)
        return tuple(result)

    def _refuse(self, left: Dnf, result: list[Support]) -> None:
        kept = [support for support in result if any(support <= old for old in left)]
        rest = sorted((s for s in result if s not in kept), key=len)
        kept.extend(rest[: max(self.width - len(kept), 0)])
        raise AnnotationTooWideError(tuple(kept))

    def difference(self, new: Dnf, old: Dnf) -> Dnf:
        """Return the supports of `new` that `old` does not absorb."""
        return tuple([a for a in new if not any(b <= a for b in old)])

    def restrict(self, annotation: Dnf, dead: Collection[int]) -> Dnf:
        """Return the annotation with tokens set to false; the same object if none occurs."""
        for support in annotation:
            if not support.isdisjoint(dead):
                return tuple([s for s in annotation if s.isdisjoint(dead)])
        return annotation

    def implies(self, left: Dnf, right: Dnf) -> bool:
        """Whether right absorbs left."""
        for new in left:
            for old in right:
                if old <= new:
                    break
            else:
                return False
        return True

    def is_false(self, annotation: Dnf) -> bool:
        """Whether no support is left."""
        return not annotation

    def witness(self, annotation: Dnf) -> Dnf:
        """Return the smallest support, the oldest of equally small ones."""
        return annotation if len(annotation) < 2 else (min(annotation, key=len),)

    def tokens(self, annotation: Dnf) -> Iterable[int]:
        """Return all tokens that occur."""
        return annotation[0] if len(annotation) == 1 else frozenset().union(*annotation)

    def supports(self, annotation: Dnf, limit: int) -> list[Support]:
        """Return the supports, smallest first; at most `limit`."""
        return sorted(annotation, key=lambda s: (len(s), sorted(s)))[:limit]

    def size(self, annotation: Dnf) -> int:
        """Return the number of tokens listed."""
        return sum(map(len, annotation))

    def encode(self, annotation: Dnf) -> bytes:
        """Return the wire form."""
        origins = sorted({origin_of(token) for support in annotation for token in support})
        index = {origin: i for i, origin in enumerate(origins)}
        out = bytearray()
        write_varint(out, len(origins))
        for origin in origins:
            write_varint(out, origin)
        write_varint(out, len(annotation))
        for support in annotation:
            write_varint(out, len(support))
            numbers = [sequence_of(t) * len(origins) + index[origin_of(t)] for t in support]
            last = 0
            for number in sorted(numbers):
                write_varint(out, number - last)
                last = number
        return bytes(out)

    def decode(self, payload: bytes) -> Dnf:
        """Return the annotation in a wire form."""
        reader = VarintReader(payload)
        origins = [reader.read(_MAX_ORIGIN) for _ in range(reader.read(MAX_WIRE_TOKENS))]
        supports = [_read_support(reader, origins) for _ in range(reader.read(MAX_WIRE_SUPPORTS))]
        reader.finish()
        return (supports[0],) if len(supports) == 1 else least_supports(supports)

    def rewritten(self, annotation: Dnf) -> Dnf:
        """Return the annotation: there are no variables."""
        return annotation

    def release(self, dead: Collection[int]) -> None:
        """Do nothing: tokens stand for themselves."""


def _read_support(reader: VarintReader, origins: list[int]) -> Support:
    tokens: list[int] = []
    number = 0
    limit = ((1 << SEQUENCE_BITS) - 1) * len(origins) + len(origins) - 1
    for _ in range(reader.read(MAX_WIRE_TOKENS)):
        number += reader.read(max(limit, 0))
        if not origins or number > limit:
            raise WireError("annotation: a token has no origin or a sequence number too large")
        sequence, origin = divmod(number, len(origins))
        tokens.append(origins[origin] << SEQUENCE_BITS | sequence)
    if not tokens:
        raise WireError("annotation: an empty support would hold without any base row")
    return frozenset(tokens)
