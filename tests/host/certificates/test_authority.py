"""A federation's authority, read by openssl and by the ssl module."""

import contextlib
import datetime as dt
import shutil
import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pytest

from host.certificates.authority import (
    MAX_NAMES,
    Authority,
    belong_together,
    load_authority,
    make_authority,
)
from host.certificates.certificate_files import CertificatePaths, write_issued
from host.certificates.certificate_request import judge_request, make_request
from streamsql.errors import DeploymentError

NOW = dt.datetime.now(dt.UTC)


@pytest.fixture
def authority() -> Authority:
    return make_authority("Pando authority of test", NOW)


def openssl(*words: str) -> str:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def written(folder: Path, authority: Authority, certificate: bytes) -> tuple[str, str]:
    (folder / "ca.crt").write_bytes(authority.certificate)
    (folder / "x.crt").write_bytes(certificate)
    return str(folder / "ca.crt"), str(folder / "x.crt")


def test_openssl_accepts_a_server_for_its_names_and_no_others(
    authority: Authority, tmp_path: Path
) -> None:
    issued = authority.issue_server("broker", ["broker.example", "127.0.0.1", "::1"], NOW)
    ca, server = written(tmp_path, authority, issued.certificate)
    verify = ("verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", ca)
    assert "OK" in openssl(*verify, "-verify_hostname", "broker.example", server)
    assert "OK" in openssl(*verify, "-verify_ip", "127.0.0.1", server)
    assert "OK" in openssl(*verify, "-verify_ip", "::1", server)
    assert "mismatch" in openssl(*verify, "-verify_hostname", "other.example", server).lower()
    assert "mismatch" in openssl(*verify, "-verify_ip", "127.0.0.2", server)


def test_openssl_accepts_what_a_gateway_asked_for_as_a_client_only(
    authority: Authority, tmp_path: Path
) -> None:
    made = make_request("gw-1")
    (tmp_path / "x.csr").write_bytes(made.request)
    assert "verify OK" in openssl("req", "-verify", "-noout", "-in", str(tmp_path / "x.csr"))
    certificate = authority.sign_client(judge_request(made.request), NOW)
    ca, client = written(tmp_path, authority, certificate)
    verify = ("verify", "-x509_strict", "-CAfile", ca)
    assert "OK" in openssl(*verify, "-purpose", "sslclient", client)
    assert "certificate purpose" in openssl(*verify, "-purpose", "sslserver", client)
    text = openssl("x509", "-in", client, "-noout", "-subject", "-text")
    assert "CN = gw-1" in text
    assert "CA:FALSE" in text
    assert belong_together(certificate, made.key)


def test_what_an_authority_signs_signs_nothing(authority: Authority, tmp_path: Path) -> None:
    server = authority.issue_server("broker", ["localhost"], NOW)
    with pytest.raises(DeploymentError, match="may not sign"):
        load_authority(server.certificate, server.key)
    (tmp_path / "x.key").write_bytes(server.key)
    (tmp_path / "x.crt").write_bytes(server.certificate)
    (tmp_path / "y.csr").write_bytes(make_request("gw-1").request)
    signer = ("-CA", str(tmp_path / "x.crt"), "-CAkey", str(tmp_path / "x.key"))
    out = ("-out", str(tmp_path / "y.crt"), "-CAcreateserial", "-days", "2")
    openssl("x509", "-req", "-in", str(tmp_path / "y.csr"), *signer, *out)
    ca, _ = written(tmp_path, authority, server.certificate)
    chain = ("-untrusted", str(tmp_path / "x.crt"))
    said = openssl("verify", "-CAfile", ca, *chain, str(tmp_path / "y.crt"))
    assert "invalid CA certificate" in said


def test_a_handshake_succeeds_with_this_authority_and_fails_with_another(
    authority: Authority, tmp_path: Path
) -> None:
    paths = CertificatePaths(tmp_path / "s.crt", tmp_path / "s.key")
    write_issued(paths, authority.issue_server("console", ["localhost"], NOW))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(paths.certificate, paths.key)

    def shake_hands(trusted: Authority) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:

            def serve() -> None:
                with contextlib.suppress(OSError):
                    serving.wrap_socket(theirs, server_side=True).close()

            thread = threading.Thread(target=serve)
            thread.start()
            client = ssl.create_default_context(cadata=trusted.certificate.decode())
            try:
                client.wrap_socket(ours, server_hostname="localhost").close()
            finally:
                ours.close()
                thread.join()

    shake_hands(authority)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(make_authority("Pando authority of test", NOW))


def test_openssl_refuses_an_expired_certificate(tmp_path: Path) -> None:
    then = NOW - dt.timedelta(days=30)
    authority = make_authority("old", then)
    issued = authority.issue_client("gw-1", then, days=29)
    ca, client = written(tmp_path, authority, issued.certificate)
    assert "certificate has expired" in openssl("verify", "-CAfile", ca, client)


def test_an_authority_does_not_sign_beyond_its_own_end() -> None:
    short = make_authority("short", NOW, days=10)
    with pytest.raises(DeploymentError, match="valid only until"):
        short.issue_client("gw-1", NOW)
    short.issue_client("gw-1", NOW, days=10)


@pytest.mark.parametrize("name", ["", "-a", "a b", "a..b", "x" * 64, "http://a", "a_b", "*", "a.*"])
def test_a_name_that_is_no_host_is_refused(authority: Authority, name: str) -> None:
    with pytest.raises(DeploymentError, match="neither a host name nor"):
        authority.issue_server("broker", [name], NOW)


def test_numbers_of_names_are_bounded(authority: Authority) -> None:
    with pytest.raises(DeploymentError, match="at least one"):
        authority.issue_server("broker", [], NOW)
    many = [f"h{number}.example" for number in range(MAX_NAMES + 1)]
    with pytest.raises(DeploymentError, match="at most 50"):
        authority.issue_server("broker", many, NOW)


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_a_common_name_has_a_length(authority: Authority, name: str) -> None:
    with pytest.raises(DeploymentError, match="1 to 64"):
        authority.issue_client(name, NOW)


def test_a_foreign_key_does_not_open_an_authority(authority: Authority) -> None:
    with pytest.raises(DeploymentError, match="do not belong together"):
        load_authority(authority.certificate, make_authority("b", NOW).key)
    with pytest.raises(DeploymentError, match="no unencrypted private key"):
        load_authority(authority.certificate, b"nothing")
    with pytest.raises(DeploymentError, match="no certificate"):
        load_authority(b"nothing", authority.key)


def test_secrets_are_in_no_representation(authority: Authority) -> None:
    issued = authority.issue_client("gw-1", NOW)
    assert "PRIVATE" not in repr(issued) + repr(authority) + repr(make_request("a"))
