"""Requests from outside: what is taken from them and what is refused."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.certificates.certificate_request import (
    MAX_REQUEST_BYTES,
    judge_request,
    make_request,
)
from streamsql.errors import DeploymentError


def requested(folder: Path, *new_key: str) -> bytes:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    out = folder / "made.csr"
    command = [program, "req", "-new", "-nodes", "-subj", "/O=x/CN=gw-7", "-out", str(out)]
    key = ["-keyout", str(folder / "made.key")]
    subprocess.run([*command, *new_key, *key], check=True, capture_output=True)
    return out.read_bytes()


@pytest.mark.parametrize(
    "new_key",
    [
        ["-newkey", "rsa:2048"],
        ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
        ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"],
        ["-newkey", "ed25519"],
    ],
)
def test_requests_of_openssl_are_taken(tmp_path: Path, new_key: list[str]) -> None:
    assert judge_request(requested(tmp_path, *new_key)).common_name == "gw-7"


@pytest.mark.parametrize(
    "new_key",
    [
        ["-newkey", "rsa:1024"],
        ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp256k1"],
    ],
)
def test_weak_and_odd_keys_are_refused(tmp_path: Path, new_key: list[str]) -> None:
    with pytest.raises(DeploymentError, match="kind that is not accepted"):
        judge_request(requested(tmp_path, *new_key))


def test_a_request_with_a_foreign_key_is_refused() -> None:
    """The signature covers name and key: who has not the key cannot have it certified."""
    one, other = make_request("gw-1").request, make_request("gw-2").request
    body = one.splitlines()
    mixed = b"\n".join([*body[:3], *other.splitlines()[3:]])
    with pytest.raises(DeploymentError):
        judge_request(mixed)


def test_a_large_request_is_not_parsed() -> None:
    with pytest.raises(DeploymentError, match="at most 8192 bytes"):
        judge_request(make_request("gw-1").request + b"\n" * MAX_REQUEST_BYTES)


@given(st.integers(0, 400), st.binary(min_size=1, max_size=8))
def test_damaged_requests_are_refused_or_read_and_raise_nothing_else(
    place: int, damage: bytes
) -> None:
    pem = make_request("gw-1").request
    try:
        judge_request(pem[:place] + damage + pem[place + len(damage) :])
    except DeploymentError:
        return
