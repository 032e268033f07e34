"""Streams whose observations nobody reads, as the coordinator says: they are not published."""

from streamsql.errors import WireError
from streamsql.wire.codec import decode_json
from streamsql.wire.observation_logs import Interest
from streamsql.wire.topics import text_of_level

MAX_UNREAD = 10_000
MAX_MESSAGE = 10_000


class StreamInterest:
    """Streams that the coordinator says nobody reads; of others everything is published."""

    def __init__(self) -> None:
        self._unread: set[str] = set()

    def heard(self, level: str, payload: bytes) -> None:
        """Take what is retained of a stream; empty: nothing is said of it any more.

        Raises:
            WireError: It cannot be read, or too many streams are not read.
        """
        stream = text_of_level(level).lower()
        wanted = not payload or decode_json(payload, Interest, limit=MAX_MESSAGE).wanted
        if wanted:
            self._unread.discard(stream)
        elif len(self._unread) < MAX_UNREAD:
            self._unread.add(stream)
        else:
            raise WireError(f"more than {MAX_UNREAD} streams are said to have no readers")

    def is_read(self, stream: str) -> bool:
        """Whether a stream's observations are to be published."""
        return stream.lower() not in self._unread
