"""Messages that wait for their segment, and when it is due. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from static_engine.landing.segment_files import LandedMessage


@dataclass(slots=True)
class OpenSegment:
    """Messages in the order of arrival, with the receipts that the broker waits for.

    Args:
        seconds: After its first message it is due.
        messages: With so many it is due.
        bytes: With so many of payload it is due.
    """

    seconds: float
    messages: int
    bytes: int
    _waiting: list[tuple[LandedMessage, int]] = field(default_factory=list)
    _size: int = 0
    _since: float = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, message: LandedMessage, receipt: int, moment: float) -> None:
        """Append a message; `moment` in seconds of a clock that nobody sets."""
        if not self._waiting:
            self._since = moment
        self._waiting.append((message, receipt))
        self._size += len(message.payload)

    def due_in(self, moment: float) -> float | None:
        """Return the seconds until it is to be written, 0 at once; None: nothing waits."""
        if not self._waiting:
            return None
        if len(self._waiting) >= self.messages or self._size >= self.bytes:
            return 0.0
        return max(self._since + self.seconds - moment, 0.0)

    def taken(self, most: int) -> tuple[list[LandedMessage], list[int]]:
        """Return the oldest messages and their receipts for one segment; the rest waits on.

        Args:
            most: Bytes of their payloads, unless the first one alone has more.
        """
        size = count = 0
        for message, _receipt in self._waiting[: self.messages]:
            if count and size + len(message.payload) > most:
                break
            size += len(message.payload)
            count += 1
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        self._size -= size
        return [message for message, _receipt in taken], [receipt for _message, receipt in taken]

    def put_back(
        self, messages: Sequence[LandedMessage], receipts: Sequence[int], moment: float
    ) -> None:
        """Take back what could not be written; it is the oldest."""
        self._waiting[:0] = zip(messages, receipts, strict=True)
        self._size += sum([len(message.payload) for message in messages])
        self._since = moment

    def forget_what_comes_again(self) -> list[LandedMessage]:
        """Discard and return messages that the broker sends again, as the connection was lost."""
        again = [message for message, receipt in self._waiting if receipt]
        self._waiting = [(message, receipt) for message, receipt in self._waiting if not receipt]
        self._size = sum([len(message.payload) for message, _receipt in self._waiting])
        return again
