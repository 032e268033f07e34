"""Annotations: monotone Boolean functions of tokens, under absorption.

A row of a recursive view is annotated with the combinations of base rows that support it: AND for
a join, OR for a union or projection. When a base row dies its token becomes false everywhere
(`restrict`); a row whose annotation became false has no support left.

Two encodings implement one interface: `dnf` (all minimal supports, listed) and `bdd` (reduced
ordered decision diagrams). An annotation is an opaque immutable value of its encoding.
"""

from collections.abc import Collection, Iterable
from typing import Any, Protocol, TypeVar, runtime_checkable

from streamsql.data.types import Row
from streamsql.errors import FederationError

A = TypeVar("A")
Support = frozenset[int]


class AnnotationTooWideError(FederationError):
    """A disjunction exceeds the encoding's bound; `narrower` implies it and lacks some supports."""

    code = "annotation_too_wide"

    def __init__(self, narrower: Any) -> None:
        super().__init__("annotation is too wide")
        self.narrower = narrower


class AnnotationEncoding(Protocol[A]):
    """Operations on annotations; every result is canonical up to the order of its parts.

    Attributes:
        false: No support.
        true: Always supported; the start of a conjunction.
    """

    false: A
    true: A

    def of_token(self, token: int) -> A:
        """Return the annotation of a base row."""

    def conjoin(self, left: A, right: A) -> A:
        """Return left AND right."""

    def disjoin(self, left: A, right: A) -> A:
        """Return left OR right.

        Raises:
            AnnotationTooWideError: The result exceeds the bound; carries a narrower one, which
                still contains all of `left`.
        """

    def difference(self, new: A, old: A) -> A:
        """Return a small d such that `d OR old` is `new OR old`; false when old absorbs new."""

    def restrict(self, annotation: A, dead: Collection[int]) -> A:
        """Return the annotation with tokens set to false; the same object if none occurs."""

    def implies(self, left: A, right: A) -> bool:
        """Whether right absorbs left: left OR right equals right."""

    def is_false(self, annotation: A) -> bool:
        """Whether no support is left."""

    def witness(self, annotation: A) -> A:
        """Return one minimal support, as few tokens as are easily found, as an annotation."""

    def tokens(self, annotation: A) -> Iterable[int]:
        """Return all tokens that occur."""

    def supports(self, annotation: A, limit: int) -> list[Support]:
        """Return minimal supports, smallest first; at most `limit` of them."""

    def size(self, annotation: A) -> int:
        """Return the size in the encoding's own unit: tokens listed, or inner nodes."""

    def encode(self, annotation: A) -> bytes:
        """Return the wire form."""

    def decode(self, payload: bytes) -> A:
        """Return the annotation in a wire form.

        Raises:
            WireError: It is malformed or larger than the bound.
        """

    def rewritten(self, annotation: A) -> A:
        """Return an annotation from before a change of variables in the current ones."""

    def release(self, dead: Collection[int]) -> None:
        """Discard tokens that occur in no annotation any more."""


def least_supports(supports: Iterable[Support]) -> tuple[Support, ...]:
    """Return the minimal supports of some, smallest first."""
    kept: list[Support] = []
    for support in sorted(set(supports), key=len):
        for smaller in kept:
            if smaller <= support:
                break
        else:
            kept.append(support)
    return tuple(kept)


@runtime_checkable
class TracksDerivedRows(Protocol):
    """An encoding whose annotations name the row that a derivation leads to."""

    def derived(self, row: Row, body: Any) -> Any:
        """Return the annotation of a row that was derived from a conjunction."""
