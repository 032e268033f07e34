"""Cuts between pieces: which rows travel to another fragment, and to which of its sites."""

from collections.abc import Iterator
from contextlib import contextmanager

from federated_optimizer.alternatives.pieces import (
    SINGLE,
    SOMEHOW,
    BasePiece,
    Cut,
    Piece,
    Spread,
    fits,
)
from streamsql.algebra.operators import RemoteSource


class Cuts:
    """The cuts of one plan.

    Attributes:
        cuts: What the leaves `RemoteSource("#n")` of base pieces stand for. Equal sub-plans cut
            for the same partitioning share a number.
    """

    def __init__(self, bases: tuple[str, ...]) -> None:
        self.cuts: dict[str, Cut] = {}
        self._numbers: dict[Cut, str] = {}
        self._bases = bases
        self._may_look_up = True

    def gathered(self, piece: Piece) -> BasePiece:
        """Return the piece with all rows at the first base site."""
        return self._at_base(piece, SINGLE)

    @contextmanager
    def _at_first_base(self) -> Iterator[None]:
        """Cut as if there were no other base site, and so that progress overtakes no row.

        Rows of a table that are looked up by key come later than the progress of the stream.
        """
        before, self._bases = (self._bases, self._may_look_up), self._bases[:1]
        self._may_look_up = False
        try:
            yield
        finally:
            self._bases, self._may_look_up = before

    def _hashed(self, piece: Piece, columns: tuple[int, ...], *, subset: bool = False) -> BasePiece:
        """Return the piece spread by hash of the columns, or gathered when there are none.

        Args:
            piece: Any piece.
            columns: Rows that agree on them must be at one site.
            subset: Whether a hash of some of the columns will do.
        """
        if not columns or len(self._bases) == 1:
            return self.gathered(piece)
        if isinstance(piece, BasePiece) and not piece.spread.single:
            have = piece.spread.columns
            if have == columns or (subset and have and set(have) <= set(columns)):
                return piece
        return self._at_base(piece, Spread(single=False, columns=columns), move=True)

    def _at_base(self, piece: Piece, spread: Spread, *, move: bool = False) -> BasePiece:
        """Return the piece as part of a base fragment, cutting it off where needed."""
        if isinstance(piece, BasePiece) and not move and fits(piece.spread, spread):
            return piece
        if len(self._bases) == 1:
            spread = SINGLE
        elif spread == SOMEHOW:
            spread = Spread(single=False, columns=tuple(range(len(piece.plan.schema))))
        if isinstance(piece, BasePiece) and spread.single and piece.spread.single:
            return piece
        piece = self._sender(piece)
        leaf = RemoteSource(self._number(Cut(piece, spread.columns)), piece.plan.schema)
        return BasePiece(leaf, spread)

    def _sender(self, piece: Piece) -> Piece:
        """Return the piece that sends the rows, which goes without a hop through a mere cut.

        Rows of another run are at the first base site already: who sends them on is there.
        """
        cut = self.cuts.get(piece.plan.fragment) if isinstance(piece.plan, RemoteSource) else None
        return piece if cut is None else cut.piece

    def _number(self, cut: Cut) -> str:
        if cut not in self._numbers:
            self._numbers[cut] = f"#{len(self._numbers) + 1}"
            self.cuts[self._numbers[cut]] = cut
        return self._numbers[cut]
