"""Certificates for tests, made by openssl: an authority of our own, and what it signs."""

import shutil
import subprocess
from pathlib import Path

import pytest


def make_certificate(folder: Path, name: str, common_name: str) -> None:
    """Make `name.key` and `name.crt`, signed by `ca` (or by itself when it is `ca`)."""
    key, request, made = (str(folder / f"{name}.{end}") for end in ("key", "csr", "crt"))
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    new_key = ["-newkey", "rsa:2048", "-nodes", "-keyout", key, "-subj", f"/CN={common_name}"]
    if name == "ca":
        commands = [[openssl, "req", "-x509", "-days", "2", "-out", made, *new_key]]
    else:
        names = folder / f"{name}.ext"
        names.write_text("subjectAltName=IP:127.0.0.1\n", encoding="utf-8")
        authority = ["-CA", str(folder / "ca.crt"), "-CAkey", str(folder / "ca.key")]
        signing = [*authority, "-CAcreateserial", "-days", "2", "-extfile", str(names)]
        commands = [
            [openssl, "req", "-new", "-out", request, *new_key],
            [openssl, "x509", "-req", "-in", request, "-out", made, *signing],
        ]
    for command in commands:
        subprocess.run(command, check=True, capture_output=True)
