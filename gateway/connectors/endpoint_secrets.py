"""Texts about an endpoint without its secrets."""

from collections.abc import Iterator, Mapping

from streamsql.redaction import HIDDEN, redacted

_NAMES = ("password", "secret", "token", "key", "community", "auth", "credential", "passphrase")
_SHORTEST = 3
"""A shorter secret would be found in every other word."""
_MAX_DEPTH = 8


class Secrets:
    """The secrets in an endpoint's settings: the texts of fields whose names say so.

    `headers` count as secrets, whatever their names.
    """

    def __init__(self, options: Mapping[str, object]) -> None:
        found = {text for text in _secrets(options) if len(text) >= _SHORTEST}
        self._texts = sorted(found, key=len, reverse=True)

    def hidden(self, text: str) -> str:
        """Return a text in which secrets, and passwords in addresses, are replaced."""
        for secret in self._texts:
            text = text.replace(secret, HIDDEN)
        return redacted(text)


def _secrets(
    options: Mapping[str, object], *, all_of_it: bool = False, depth: int = _MAX_DEPTH
) -> Iterator[str]:
    for name, value in options.items():
        lower = name.lower()
        is_secret = all_of_it or lower == "headers" or any(word in lower for word in _NAMES)
        yield from _texts(value, is_secret=is_secret, depth=depth)


def _texts(value: object, *, is_secret: bool, depth: int) -> Iterator[str]:
    if isinstance(value, str | int) and not isinstance(value, bool):
        if is_secret:
            yield str(value)
    elif isinstance(value, Mapping) and depth:
        yield from _secrets(value, all_of_it=is_secret, depth=depth - 1)
    elif isinstance(value, list | tuple) and depth:
        for each in value:
            yield from _texts(each, is_secret=is_secret, depth=depth - 1)
