"""Addresses that may be listened on; certificates that cannot be used."""

from pathlib import Path

import pytest

from broker.embedded.__main__ import main
from broker.embedded.tls_listener import check_address, common_name, server_context
from tests.certificates import make_certificate

OUTSIDE = ["0.0.0.0", "192.168.1.7", "::"]  # noqa: S104 - refused, or not listened on


@pytest.mark.parametrize("host", OUTSIDE)
def test_without_tls_and_accounts_only_loopback(
    host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--port", "0", "--host", host]) == 2
    words = capsys.readouterr().err
    assert "loopback only" in words
    assert "--tls-cert" in words
    assert "--dynamic-security" in words


@pytest.mark.parametrize("host", OUTSIDE)
def test_with_tls_and_accounts_any_address(host: str) -> None:
    assert check_address(host, secured=True) == host


@pytest.mark.parametrize("host", ["example.org", ""])
def test_a_name_is_no_address(host: str) -> None:
    with pytest.raises(ValueError, match="not an IP address"):
        check_address(host, secured=True)


def test_loopback_addresses_are_accepted() -> None:
    given = ("localhost", "127.0.0.2", "::1")
    assert [check_address(h, secured=False) for h in given] == ["127.0.0.1", "127.0.0.2", "::1"]


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    for name in ("ca", "one", "two"):
        make_certificate(tmp_path, name, name)
    missing, text = tmp_path / "none.crt", tmp_path / "text"
    text.write_text("no PEM")
    one, key = tmp_path / "one.crt", tmp_path / "one.key"
    assert server_context(None, None, None) is None
    assert server_context(one, key, tmp_path / "ca.crt") is not None
    for certificate, given_key, authority, words in [
        (one, None, None, "both"),
        (None, None, one, "both"),
        (missing, key, None, "none.crt"),
        (one, tmp_path / "two.key", None, "one.crt"),
        (text, key, None, "text"),
        (one, key, text, "text"),
        (one, key, missing, "none.crt"),
    ]:
        with pytest.raises(ValueError, match=words):
            server_context(certificate, given_key, authority)


def test_the_name_in_a_certificate() -> None:
    assert common_name(None) is None
    assert common_name({}) is None
    assert common_name({"subject": ((("organizationName", "x"),), (("commonName", "gw-1"),))}) == (
        "gw-1"
    )
    assert common_name({"subject": ((("organizationName", "x"),),)}) == ""
