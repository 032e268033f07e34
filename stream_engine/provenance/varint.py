"""Unsigned integers in as few bytes as they need (LEB128), read with bounds."""

from streamsql.errors import WireError

_MAX_SHIFT = 70


def write_varint(out: bytearray, number: int) -> None:
    r"""Append a number >= 0.

    Examples:
        >>> out = bytearray()
        >>> write_varint(out, 300)
        >>> bytes(out)
        b'\xac\x02'
    """
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


class VarintReader:
    """Reads numbers one after the other from bytes received."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._position = 0

    def read(self, limit: int) -> int:
        """Return the next number.

        Raises:
            WireError: The bytes end, or the number exceeds the limit.
        """
        payload, position = self._payload, self._position
        number = shift = 0
        while True:
            if position >= len(payload) or shift > _MAX_SHIFT:
                raise WireError("annotation: a number is cut off or too long")
            byte = payload[position]
            position += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        if number > limit:
            raise WireError(f"annotation: number {number} is above {limit}")
        self._position = position
        return number

    def take(self, count: int) -> bytes:
        """Return the next bytes as they are.

        Raises:
            WireError: There are not as many.
        """
        taken = self._payload[self._position : self._position + count]
        if len(taken) != count:
            raise WireError(f"annotation: {count - len(taken)} bytes are missing")
        self._position += count
        return taken

    def rest(self) -> bytes:
        """Return all bytes that are left."""
        return self.take(len(self._payload) - self._position)

    def finish(self) -> None:
        """Check that nothing follows.

        Raises:
            WireError: There are bytes left.
        """
        if self._position != len(self._payload):
            raise WireError(f"annotation: {len(self._payload) - self._position} bytes too many")
