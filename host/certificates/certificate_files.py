"""Keys and certificates on disk: the authority's folder, keys readable by their owner only."""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from host.certificates.authority import (
    Authority,
    IssuedKey,
    belong_together,
    general_names,
    load_authority,
    make_authority,
)
from host.certificates.certificate_facts import MAX_PEM_BYTES, facts_of
from host.files.atomic_file import PRIVATE, PUBLIC, replace_file
from streamsql.errors import DeploymentError

AUTHORITY_CERTIFICATE = "ca.crt"
AUTHORITY_KEY = "ca.key"


@dataclass(frozen=True, slots=True)
class CertificatePaths:
    """Files of one certificate in a folder: `NAME.crt` and `NAME.key`."""

    certificate: Path
    key: Path


def certificate_paths(folder: Path, name: str) -> CertificatePaths:
    """Return where the certificate of a name is, or is to be."""
    return CertificatePaths(folder / f"{name}.crt", folder / f"{name}.key")


def open_or_make_authority(folder: Path, name: str, now: dt.datetime) -> Authority:
    """Return the authority in a folder; make one where there is none.

    Args:
        folder: Made, for its owner only, if it does not exist.
        name: Common name of a new authority.
        now: The time.

    Raises:
        DeploymentError: Files are damaged, one of the two is missing, or it has expired.
        OSError: The folder cannot be written.
    """
    if has_authority(folder):
        return open_authority(folder, now)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = make_authority(name, now)
    write_issued(CertificatePaths(*_authority_paths(folder)), IssuedKey(made.certificate, made.key))
    return made


def has_authority(folder: Path) -> bool:
    """Whether there is an authority in a folder, or part of one."""
    return any(path.exists() for path in _authority_paths(folder))


def open_authority(folder: Path, now: dt.datetime) -> Authority:
    """Return the authority in a folder.

    Raises:
        DeploymentError: A file is missing or damaged, or the authority has expired.
    """
    certificate, key = _authority_paths(folder)
    authority = load_authority(
        read_pem(certificate, "certificate of the authority"),
        read_pem(key, "key of the authority"),
    )
    problem = authority.facts.validity_problem(now)
    if problem:
        raise DeploymentError(
            f"certificate of the authority {certificate}: {problem}",
            hint="make a new authority in another folder, and give it to all services",
        )
    return authority


def write_issued(paths: CertificatePaths, issued: IssuedKey) -> None:
    """Write a key, readable by its owner only, then its certificate.

    Raises:
        OSError: A file cannot be written.
    """
    replace_file(paths.key, issued.key, mode=PRIVATE)
    replace_file(paths.certificate, issued.certificate, mode=PUBLIC)


def read_pem(path: Path, what: str) -> bytes:
    """Return the content of a PEM file of bounded size.

    Raises:
        DeploymentError: It cannot be read or is too large.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_PEM_BYTES + 1)
    except OSError as error:
        raise DeploymentError(f"cannot read {what} {path}: {error.strerror}") from error
    if len(content) > MAX_PEM_BYTES:
        raise DeploymentError(f"{what} {path}: it is larger than {MAX_PEM_BYTES} bytes")
    return content


def ensure_server_certificate(
    authority: Authority, folder: Path, name: str, names: tuple[str, ...], now: dt.datetime
) -> CertificatePaths:
    """Return the files of a server's certificate; make it where it is missing or to be renewed.

    It is made again when it was signed by another authority, does not have all the names, or two
    thirds of its validity are over.

    Raises:
        DeploymentError: A name is no host name, or the authority is not valid long enough.
        OSError: The folder cannot be written.
    """
    paths = certificate_paths(folder, name)
    if not _serves(authority, paths, names, now):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_issued(paths, authority.issue_server(name, names, now))
    return paths


def _serves(
    authority: Authority, paths: CertificatePaths, names: tuple[str, ...], now: dt.datetime
) -> bool:
    if not (paths.certificate.exists() and paths.key.exists()):
        return False
    try:
        pem = read_pem(paths.certificate, "certificate")
        facts = facts_of(pem)
        usable = authority.has_signed(pem) and belong_together(
            pem, read_pem(paths.key, "private key")
        )
    except DeploymentError:
        return False
    wanted = {str(name.value) for name in general_names(names)}
    return usable and wanted <= set(facts.names) and not facts.renewal_due(now)


def _authority_paths(folder: Path) -> tuple[Path, Path]:
    return folder / AUTHORITY_CERTIFICATE, folder / AUTHORITY_KEY
