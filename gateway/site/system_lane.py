"""What hosts that are no engine sites tell of themselves, taken in at a base site.

Coordinator and static engine run no fragments that read `sys_stream`. Their rows come over the
observation lane of that stream to the base site that gathers a query, and become rows of it there.
"""

from streamsql.data.events import SourceEvent
from streamsql.errors import WireError
from streamsql.wire.codec import decode_json
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import SystemRows

MAX_PACK = 2_000_000
MAX_HOSTS = 100


def listens(bundle: FragmentBundle, site: str) -> bool:
    """Whether a site takes the rows of other hosts in: one of all that read them."""
    return site in bundle.result_sites


class SystemLane:
    """Rows of other hosts, each once."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, int]] = {}

    def events(self, host: str, payload: bytes, now: int) -> list[SourceEvent]:
        """Return the events of a message; none if it was seen already.

        Args:
            host: Who sends.
            payload: `SystemRows`.
            now: The site's time, which the rows get: the sender may live in another.

        Raises:
            WireError: It cannot be read, or too many hosts send.
        """
        pack = decode_json(payload, SystemRows, limit=MAX_PACK)
        if host not in self._newest and len(self._newest) >= MAX_HOSTS:
            raise WireError(f"more than {MAX_HOSTS} hosts report")
        number = (pack.epoch, pack.seq)
        if number <= self._newest.get(host, (-1, -1)):
            return []
        self._newest[host] = number
        return [
            SourceEvent((now, host, query, entity, kind, name, value), now)
            for query, entity, kind, name, value in pack.rows
        ]
