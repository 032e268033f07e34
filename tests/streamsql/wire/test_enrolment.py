"""Enrolment tokens: what is written is read, anything else is refused, secrets are not shown."""

import base64
import json
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.errors import DeploymentError
from streamsql.wire.enrolment import MAX_TOKEN, EnrolmentToken, JoinAnswer, decode_token, hash_of

SECRET = secrets.token_urlsafe(32)


@given(
    st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True),
    st.binary(min_size=32, max_size=32),
    st.one_of(st.just(""), st.from_regex(r"[0-9a-f]{64}", fullmatch=True)),
)
def test_a_token_is_read_as_it_was_written(name: str, secret: bytes, authority: str) -> None:
    text = base64.urlsafe_b64encode(secret).decode().rstrip("=")
    token = EnrolmentToken(name, text, authority)
    assert len(token.encode()) <= MAX_TOKEN
    assert decode_token(f" {token.encode()}\n") == token


def test_a_token_is_base64url_of_json() -> None:
    text = EnrolmentToken("gw-4", SECRET, "a" * 64).encode().removeprefix("pando1.")
    body = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    assert body == {"g": "gw-4", "s": SECRET, "a": "a" * 64}
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@given(st.one_of(st.text(max_size=50), st.text(max_size=500).map(lambda text: f"pando1.{text}")))
def test_what_is_no_token_is_refused_in_words(text: str) -> None:
    with pytest.raises(DeploymentError, match="token"):
        decode_token(text)


@pytest.mark.parametrize(
    "body",
    [{"g": "a/b", "s": SECRET}, {"g": "gw", "s": "short"}, {"g": "gw", "s": SECRET, "a": "xyz"}],
)
def test_parts_that_are_none_are_refused(body: dict[str, str]) -> None:
    text = base64.urlsafe_b64encode(json.dumps(body).encode()).decode()
    with pytest.raises(DeploymentError, match="incomplete or damaged"):
        decode_token(f"pando1.{text}")


def test_no_secret_is_in_a_representation() -> None:
    answer = JoinAnswer("demo", "gw-4", "mqtts://b:8883", "", "", "the-password")
    assert SECRET not in repr(EnrolmentToken("gw-4", SECRET))
    assert "the-password" not in repr(answer)
    assert SECRET not in hash_of(SECRET)
