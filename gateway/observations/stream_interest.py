"""What the coordinator says of streams: nobody reads it, or nobody waits for what it publishes."""

from streamsql.errors import WireError
from streamsql.wire.codec import decode_json
from streamsql.wire.observation_logs import Interest
from streamsql.wire.topics import text_of_level

MAX_UNREAD = 10_000
MAX_MESSAGE = 10_000


class StreamInterest:
    """Streams that the coordinator says nobody reads or waits for; others are published soon."""

    def __init__(self) -> None:
        self._unread: set[str] = set()
        self._patient: set[str] = set()

    def heard(self, level: str, payload: bytes) -> None:
        """Take what is retained of a stream; empty: nothing is said of it any more.

        Raises:
            WireError: It cannot be read, or too many streams are said to have no readers.
        """
        stream = text_of_level(level).lower()
        said = decode_json(payload, Interest, limit=MAX_MESSAGE) if payload else Interest(True)
        self._unread.discard(stream)
        self._patient.discard(stream)
        if said.wanted and said.soon:
            return
        if len(self._unread) + len(self._patient) >= MAX_UNREAD:
            raise WireError(f"more than {MAX_UNREAD} streams are said to have no readers")
        (self._patient if said.wanted else self._unread).add(stream)

    def is_read(self, stream: str) -> bool:
        """Whether a stream's observations are to be published."""
        return stream.lower() not in self._unread

    def is_waited_for(self, stream: str) -> bool:
        """Whether readers of a stream want its observations soon, if there are readers."""
        return stream.lower() not in self._patient
