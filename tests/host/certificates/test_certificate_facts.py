"""Contents of certificates, compared with what openssl prints."""

import datetime as dt
import shutil
import subprocess
from pathlib import Path

import pytest

from host.certificates.authority import make_authority
from host.certificates.certificate_facts import MAX_PEM_BYTES, facts_of
from streamsql.errors import DeploymentError

NOW = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)


def test_contents_are_those_that_openssl_prints(tmp_path: Path) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    authority = make_authority("Pando authority", NOW)
    pem = authority.issue_server("broker", ["b.example", "10.0.0.1"], NOW, days=10).certificate
    (tmp_path / "x.crt").write_bytes(pem)
    words = [program, "x509", "-noout", "-serial", "-fingerprint", "-sha256", "-enddate", "-issuer"]
    printed = subprocess.run(
        [*words, "-in", str(tmp_path / "x.crt")], capture_output=True, text=True, check=True
    ).stdout
    facts = facts_of(pem)
    said = dict(line.split("=", 1) for line in printed.splitlines())
    assert int(said["serial"], 16) == int(facts.serial, 16)
    assert said["sha256 Fingerprint"].replace(":", "").lower() == facts.fingerprint
    assert said["notAfter"] == "May 11 12:00:00 2026 GMT"
    assert facts.valid_until == NOW + dt.timedelta(days=10)
    assert said["issuer"] == "CN = Pando authority"
    assert facts.names == ("b.example", "10.0.0.1")
    assert (facts.authority, facts.for_servers, facts.for_clients) == (False, True, False)
    assert authority.facts.authority


def test_validity_is_said_in_words() -> None:
    facts = make_authority("a", NOW, days=9).facts
    day = dt.timedelta(days=1)
    assert facts.validity_problem(NOW) == ""
    assert facts.validity_problem(NOW + 10 * day) == "it has expired at 2026-05-10 12:00 UTC"
    assert facts.validity_problem(NOW - day) == "it is valid only from 2026-05-01 11:50 UTC on"
    assert not facts.renewal_due(NOW + 5 * day)
    assert facts.renewal_due(NOW + 6 * day)


@pytest.mark.parametrize("pem", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n", b"\xff" * 100])
def test_what_is_no_certificate_is_refused(pem: bytes) -> None:
    with pytest.raises(DeploymentError, match="no certificate"):
        facts_of(pem)


def test_a_large_text_is_not_parsed() -> None:
    with pytest.raises(DeploymentError, match="larger than"):
        facts_of(b"x" * (MAX_PEM_BYTES + 1))
