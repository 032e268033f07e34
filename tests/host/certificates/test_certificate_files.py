"""The authority's folder and servers' certificates on disk."""

import datetime as dt
from pathlib import Path

import pytest

from host.certificates.certificate_facts import facts_of
from host.certificates.certificate_files import (
    ensure_server_certificate,
    open_authority,
    open_or_make_authority,
)
from streamsql.errors import DeploymentError

NOW = dt.datetime.now(dt.UTC)
NAMES = ("localhost", "127.0.0.1", "::1")


def test_an_authority_is_made_once_and_its_key_is_the_owners(tmp_path: Path) -> None:
    folder = tmp_path / "authority"
    made = open_or_make_authority(folder, "Pando authority", NOW)
    assert (folder / "ca.key").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert open_or_make_authority(folder, "another", NOW).certificate == made.certificate
    assert open_authority(folder, NOW).facts.common_name == "Pando authority"


@pytest.mark.parametrize("lost", ["ca.crt", "ca.key"])
def test_a_half_authority_is_never_replaced(tmp_path: Path, lost: str) -> None:
    open_or_make_authority(tmp_path, "Pando authority", NOW)
    (tmp_path / lost).unlink()
    with pytest.raises(DeploymentError, match="cannot read"):
        open_or_make_authority(tmp_path, "Pando authority", NOW)


def test_an_expired_authority_says_so(tmp_path: Path) -> None:
    open_or_make_authority(tmp_path, "Pando authority", NOW - dt.timedelta(days=3_651))
    with pytest.raises(DeploymentError, match="has expired at"):
        open_authority(tmp_path, NOW)


def test_a_servers_certificate_is_made_again_only_when_it_has_to_be(tmp_path: Path) -> None:
    authority = open_or_make_authority(tmp_path / "ca", "Pando authority", NOW)

    def serial(names: tuple[str, ...] = NAMES, days: int = 0) -> str:
        now = NOW + dt.timedelta(days=days)
        paths = ensure_server_certificate(authority, tmp_path, "broker", names, now)
        assert paths.key.stat().st_mode & 0o777 == 0o600
        return facts_of(paths.certificate.read_bytes()).serial

    first = serial()
    assert serial() == first
    assert serial(NAMES[:1]) == first
    assert serial(days=240) == first
    renewed = serial(days=250)
    assert renewed != first
    wider = serial((*NAMES, "broker.example"), days=250)
    assert wider != renewed
    (tmp_path / "broker.key").write_bytes(authority.issue_client("x", NOW).key)
    assert serial(days=250) != wider


def test_a_certificate_of_another_authority_is_made_again(tmp_path: Path) -> None:
    one = open_or_make_authority(tmp_path / "one", "one", NOW)
    other = open_or_make_authority(tmp_path / "other", "other", NOW)
    ensure_server_certificate(one, tmp_path, "broker", NAMES, NOW)
    paths = ensure_server_certificate(other, tmp_path, "broker", NAMES, NOW)
    assert facts_of(paths.certificate.read_bytes()).issuer == "other"
