"""Bodies of HTTP messages: unpacked within their bounds, and as UTF-8."""

import re
import zlib

_PACKED = frozenset({"gzip", "x-gzip", "deflate"})
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_READ_CHARSETS = re.compile(
    r"us-ascii|ascii|latin-?1|iso-?8859-\d{1,2}|(?:windows-|cp)125\d|utf-?16(?:-?[lb]e)?"
)
"""Those of devices. Python knows others whose decoding takes the square of the length."""
_UTF_8 = frozenset({"", "utf-8", "utf8"})


class ContentError(ValueError):
    """A body cannot be used; the text says why.

    Attributes:
        too_large: Whether only its size is wrong.
    """

    def __init__(self, text: str, *, too_large: bool = False) -> None:
        super().__init__(text)
        self.too_large = too_large


class Body:
    """A body that is being received.

    Args:
        encoding: The header Content-Encoding, or empty.
        limit: Bytes that it may have, unpacked.

    Raises:
        ContentError: The encoding is none that is read.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        name = encoding.strip().lower()
        if name not in _PACKED | {"", "identity"}:
            raise ContentError(f"Content-Encoding {encoding!r:.40}: only gzip and deflate are read")
        # 32: by its first bytes it is gzip or zlib.
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if name in _PACKED else None
        self._limit = limit
        self._content = bytearray()

    def add(self, part: bytes) -> None:
        """Take the next bytes.

        Raises:
            ContentError: It is too large or damaged.
        """
        if self._unpack is not None:
            try:
                part = self._unpack.decompress(part, self._limit + 1 - len(self._content))
            except zlib.error as error:
                raise ContentError(f"the packed body is damaged: {error}") from None
        if len(self._content) + len(part) > self._limit:
            raise ContentError(f"more than {self._limit:,} bytes; nothing is read", too_large=True)
        self._content += part

    def __len__(self) -> int:
        """Return the bytes so far, unpacked."""
        return len(self._content)

    def whole(self) -> bytes:
        """Return the body.

        Raises:
            ContentError: The end of a packed body is missing.
        """
        if self._unpack is not None and self._content and not self._unpack.eof:
            raise ContentError("the packed body ends too early")
        return bytes(self._content)


def in_utf_8(body: bytes, content_type: str) -> bytes:
    """Return a text in UTF-8, given the header Content-Type that names its charset.

    Raises:
        ContentError: The charset is unknown, or the text is not in it.

    Examples:
        >>> in_utf_8("21 °C".encode("latin-1"), "text/csv; charset=ISO-8859-1").decode()
        '21 °C'
    """
    found = _CHARSET.search(content_type)
    charset = found.group(1).lower() if found else ""
    if charset in _UTF_8:
        return body
    if not _READ_CHARSETS.fullmatch(charset):
        raise ContentError(f"charset {charset!r} is not read; send UTF-8")
    try:
        return body.decode(charset).encode()
    except (LookupError, UnicodeError) as error:
        raise ContentError(f"it is no text in {charset}: {error!s:.100}") from None
