"""Options of the connector http_push."""

import msgspec

from streamsql.errors import DeploymentError

SHORTEST_TOKEN = 8
MAX_TOKENS = 1_000


class PushEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Address at which the gateway listens, and the credentials of senders.

    Attributes:
        port: To listen on; 0 takes a free one.
        host: Address to listen on; 0.0.0.0: all of this machine.
        tokens: What a sender must show, by source.
        token: For sources that `tokens` does not name; empty: nobody may send to them.
        certificate: File (PEM) of a certificate chain: the server speaks HTTPS.
        certificate_key: File of its key; empty: it is in the same file.
    """

    port: int
    host: str = "127.0.0.1"
    tokens: dict[str, str] = {}
    token: str = ""
    certificate: str = ""
    certificate_key: str = ""

    def __post_init__(self) -> None:
        _require(0 <= self.port <= 65_535, "port: between 0 and 65535")
        _require(len(self.tokens) <= MAX_TOKENS, f"tokens: at most {MAX_TOKENS}")
        for token in (*self.tokens.values(), *([self.token] if self.token else [])):
            _require(
                len(token) >= SHORTEST_TOKEN and token.isascii() and token.isprintable(),
                f"tokens have at least {SHORTEST_TOKEN} characters, of ASCII",
            )

    def token_of(self, source: str) -> str:
        """Return what a sender to a source must show; empty: nobody may."""
        return self.tokens.get(source, self.token)


class PushSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which requests are for a source.

    Attributes:
        path: With or without a slash before it; `{name}` stands for one part of it and feeds the
            column of that name. Empty: the source's name.
    """

    path: str = ""


def _require(is_right: bool, text: str) -> None:
    if not is_right:
        raise DeploymentError(text)
