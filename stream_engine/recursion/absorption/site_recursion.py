"""What recursive operators of several sites have in common: where they are, and how they fail."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from stream_engine.provenance.tokens import MAX_SITES
from stream_engine.recursion.absorption.recursion_outbox import RecursiveOutgoing
from stream_engine.recursion.program.fixpoint_options import FixpointCounters
from stream_engine.recursion.program.program import Program
from streamsql.data.delta import Delta
from streamsql.data.types import Row
from streamsql.errors import FederationError, InternalError
from streamsql.wire.messages import AnnotatedRow


class SiteRecursion(ABC):
    """A `RecursiveOperator` at one of the sites that compute a recursion together.

    An error in `settle` drops all state, and every later call raises it again.

    Args:
        sites: All sites that take part, in the same order everywhere.
    """

    counters: FixpointCounters

    def __init__(self, program: Program, site: str, sites: tuple[str, ...]) -> None:
        if site not in sites or len(sites) > MAX_SITES:
            raise InternalError(f"recursion {program.name}: {site} not among {len(sites)} sites")
        self.leaves = program.leaves
        self.leaf_columns = tuple(use.columns for use in program.uses)
        self._program = program
        self._site = site
        self._sites = sites
        self._failure: FederationError | None = None

    def apply(self, port: int, delta: Delta) -> None:
        """Buffer the change of leaf `port`, with any weights."""
        if self._failure is None:
            self._buffer(port, delta)

    def receive(
        self, sender: str, port: str, annotated: Sequence[AnnotatedRow], kills: Sequence[int]
    ) -> None:
        """Buffer what another site sent.

        Raises:
            WireError: The port is unknown, or a row or token is malformed.
        """
        if self._failure is None:
            self._receive(sender, port, annotated, kills)

    def settle(self, rounds: int | None = None) -> Delta:
        """Work on everything buffered; return the change of this site's part of the view.

        Args:
            rounds: Stop after that many rounds of semi-naive evaluation and keep the rest for the
                next call.

        Raises:
            RecursionLimitError: The view or the work has grown past its bound.
            UnsupportedError: Rows have to be taken back that the strategy cannot take back.
        """
        if self._failure is not None:
            raise self._failure
        try:
            return self._work(rounds)
        except FederationError as error:
            self._fail(error)
            raise

    def _fail(self, error: FederationError) -> None:
        self._failure = error
        self.clear()

    def drain(self) -> list[RecursiveOutgoing]:
        """Return the messages for other sites that settling has produced, in sending order."""
        messages = self._messages()
        for message in messages:
            self.counters.sent_rows += message.rows
            self.counters.sent_bytes += sum(len(row.annotation) for row in message.annotated)
        return messages

    @property
    @abstractmethod
    def is_settled(self) -> bool:
        """Whether `settle` has nothing left to do with what was buffered before it."""

    @abstractmethod
    def kill_site(self, site: str, epoch: int) -> None:
        """Declare dead what rests on a site's base rows of this epoch and earlier ones."""

    @abstractmethod
    def state_rows(self) -> Iterator[Row]:
        """Yield the rows of this site's part of the view."""

    @abstractmethod
    def clear(self) -> None:
        """Drop all state."""

    @abstractmethod
    def _buffer(self, leaf: int, delta: Delta) -> None: ...

    @abstractmethod
    def _receive(
        self, sender: str, port: str, annotated: Sequence[AnnotatedRow], kills: Sequence[int]
    ) -> None: ...

    @abstractmethod
    def _work(self, rounds: int | None) -> Delta: ...

    @abstractmethod
    def _messages(self) -> list[RecursiveOutgoing]: ...
