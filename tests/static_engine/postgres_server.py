"""A private PostgreSQL server of a test."""

import contextlib
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from broker.free_ports import free_port

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def as_postgres(*command: str, folder: Path) -> None:
    """Run a program as the user `postgres`: the server refuses to run as root."""
    prefix = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    done = subprocess.run(
        [*prefix, *command], cwd=folder, capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def postgres_server(name: str) -> Iterator[str]:
    """Run a server; yield the address of its database."""
    assert PROGRAMS, "PostgreSQL is not installed (.ci/run installs it)"
    programs = PROGRAMS[-1]
    # Not pytest's folder, which other users may not enter.
    folder = Path("/tmp") / f"pando-{name}-{os.getpid()}"  # noqa: S108
    folder.mkdir(mode=0o700)
    data = folder / "data"
    if os.getuid() == 0:
        shutil.chown(folder, *pwd.getpwnam("postgres")[2:4])
    try:
        as_postgres(
            str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "pando", "-N",
            "--encoding=UTF8", "--no-locale", folder=folder,
        )  # fmt: skip
        port = free_port()
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c fsync=off -k {folder}"
        control = [str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log")]
        as_postgres(*control, "-o", options, "start", folder=folder)
        try:
            yield f"postgresql+psycopg://pando:secret@127.0.0.1:{port}/postgres"
        finally:
            as_postgres(*control, "-m", "immediate", "stop", folder=folder)
    finally:
        shutil.rmtree(folder)
