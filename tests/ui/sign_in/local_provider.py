"""An OpenID Connect provider on loopback, made of the standards' texts and not of our library.

It signs with `cryptography` alone and checks PKCE with `hashlib`, so what it accepts and issues
does not rest on the code that is tested.
"""

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from typing_extensions import override

CLIENT, SECRET = "pando-console", "the clients secret"


def encoded(content: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def number(value: int) -> str:
    """Return a number as JSON Web Keys write it."""
    return encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class LocalProvider:
    """A provider that tests may make lie.

    Attributes:
        claims: That replace those of its tokens; None removes one.
        header: That replaces parts of the header.
        forged: How tokens are signed: "" rightly, "other" by another key, "none" not at all,
            "shared" with the public key as a shared one.
        described: That replaces parts of its description.
        answer: In place of the answer to a code, as status and content.
        asked: Paths that were asked for.
    """

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.claims: dict[str, Any] = {}
        self.header: dict[str, Any] = {}
        self.described: dict[str, Any] = {}
        self.answer: tuple[int, bytes] | None = None
        self.forged = ""
        self.asked: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        self.new_key()

    def new_key(self) -> None:
        """Sign with another key from now on."""
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._kid = encoded(hashlib.sha256(str(id(self._key)).encode()).digest()[:6])

    def authorize(self, address: str) -> dict[str, str]:
        """Let somebody in who was sent to `address`; return what the browser brings back."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = f"code-{len(self._codes)}"
        self._codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def description(self) -> dict[str, Any]:
        """Return the description of the provider."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            **self.described,
        }

    def keys(self) -> dict[str, Any]:
        """Return the key set."""
        public = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "kid": self._kid, "n": number(public.n), "e": number(public.e)}
        return {"keys": [{**key, "use": "sig", "alg": "RS256"}]}

    def tokens(self, form: dict[str, str]) -> tuple[int, bytes]:
        """Return the answer to a code."""
        if self.answer is not None:
            return self.answer
        asked = self._codes.pop(form.get("code", ""), None)
        hashed = encoded(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        good = asked is not None and (
            form.get("grant_type"),
            form.get("client_id"),
            form.get("client_secret"),
            form.get("redirect_uri"),
            hashed,
        ) == ("authorization_code", CLIENT, SECRET, asked["redirect_uri"], asked["code_challenge"])
        if asked is None or not good or len(form["code_verifier"]) < 43:
            return 400, b'{"error": "invalid_grant"}'
        token = self._signed(asked["nonce"])
        answer = {"access_token": "access", "token_type": "Bearer", "id_token": token}
        return 200, json.dumps(answer).encode()

    def _signed(self, nonce: str) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": "17",
            "aud": CLIENT,
            "exp": now + 300,
            "iat": now,
            "nonce": nonce,
            "preferred_username": "Eve",
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        algorithm = {"none": "none", "shared": "HS256"}.get(self.forged, "RS256")
        header = {"alg": algorithm, "kid": self._kid, **self.header}
        text = f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(claims).encode())}"
        return f"{text}.{encoded(self._signature(text.encode()))}"

    def _signature(self, text: bytes) -> bytes:
        if self.forged == "none":
            return b""
        if self.forged == "shared":
            pem = self._key.public_key().public_bytes(
                Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
            )
            return hmac.digest(pem, text, "sha256")
        key = self._key
        if self.forged == "other":
            key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        return key.sign(text, padding.PKCS1v15(), hashes.SHA256())


@contextmanager
def local_provider() -> Iterator[LocalProvider]:
    """Serve a provider on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.asked.append(self.path)
            told = {
                "/.well-known/openid-configuration": provider.description,
                "/keys": provider.keys,
            }.get(self.path)
            self._say(200 if told else 404, json.dumps(told() if told else {}).encode())

        def do_POST(self) -> None:
            provider.asked.append(self.path)
            content = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {name: values[0] for name, values in parse_qs(content).items()}
            self._say(*provider.tokens(form))

        def _say(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = LocalProvider(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
