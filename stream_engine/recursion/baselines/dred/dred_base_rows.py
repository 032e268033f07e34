"""The leaf rows that arrived at a site, and those whose coming or going waits for its time."""

from stream_engine.recursion.program.leaves import LeafInput
from stream_engine.recursion.program.rules import LeafUse
from streamsql.data.delta import Delta
from streamsql.data.types import Row

Rows = dict[Row, None]


class BaseRows:
    """The distinct, narrowed leaf rows of a site, and what was not told to the recursion yet.

    State: per leaf the rows that are there, those that entered and those that left. A row that
    enters and leaves before it is told was never there.
    """

    def __init__(self, uses: tuple[LeafUse, ...]) -> None:
        self._inputs = tuple(LeafInput(use) for use in uses)
        self._present: tuple[Rows, ...] = tuple({} for _ in uses)
        self._entered: tuple[Rows, ...] = tuple({} for _ in uses)
        self._left: tuple[Rows, ...] = tuple({} for _ in uses)

    def buffer(self, leaf: int, delta: Delta) -> None:
        """Note changes of a leaf."""
        self._inputs[leaf].buffer(delta)

    def take_in(self) -> None:
        """Work out what the noted changes mean."""
        for source, present, waiting, leaving in zip(
            self._inputs, self._present, self._entered, self._left, strict=True
        ):
            entered, left = source.take()
            for row in left:
                del present[row]
                if row in waiting:
                    del waiting[row]
                else:
                    leaving[row] = None
            for row in entered:
                present[row] = None
                if row in leaving:
                    del leaving[row]
                else:
                    waiting[row] = None

    @property
    def has_left(self) -> bool:
        """Whether rows left that the recursion still has."""
        return any(self._left)

    def take_entered(self) -> tuple[Rows, ...]:
        """Return, per leaf, the rows to tell now."""
        entered, self._entered = self._entered, tuple({} for _ in self._entered)
        return entered

    def take_left(self) -> tuple[Rows, ...]:
        """Return, per leaf, the rows to take back now."""
        left, self._left = self._left, tuple({} for _ in self._left)
        return left

    def restart(self) -> None:
        """Nothing was told: all rows have just entered."""
        self._entered = tuple(dict(present) for present in self._present)
        self._left = tuple({} for _ in self._left)
