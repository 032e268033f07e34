"""One federation per data directory, and what a killed one leaves."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local.claim import Claim, end_leftovers, leftovers
from host.files.file_lock import is_locked
from streamsql.errors import DeploymentError

HOLDER = """
import sys, time
from pathlib import Path
from deploy.local.claim import Claim
claim = Claim(Path(sys.argv[1]))
claim.take()
print("taken", flush=True)
time.sleep(60)
"""
SLEEP = "import time; time.sleep(60)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('deaf', flush=True); time.sleep(60)"
)


def test_a_claim_is_taken_once_and_given_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "lock"
    claim = Claim(path)
    claim.take()
    assert claim.held
    assert is_locked(path)
    assert path.read_text() == str(os.getpid())
    with pytest.raises(DeploymentError, match=rf"\(pid {os.getpid()}\) runs on data directory"):
        Claim(path).take()
    claim.release()
    claim.release()
    assert not is_locked(path)
    assert not path.parent.exists(), "an empty directory of ours goes too"
    again = Claim(path)
    again.take()
    (path.parent / "state").mkdir()
    again.release()
    assert sorted(p.name for p in path.parent.iterdir()) == ["state"]


def test_who_only_asks_takes_a_claim_from_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    path.touch()
    asking = path.open("r", encoding="ascii")
    fcntl.flock(asking, fcntl.LOCK_SH | fcntl.LOCK_NB)
    monkeypatch.setattr("host.files.file_lock.time.sleep", lambda _: asking.close())
    claim = Claim(path)
    claim.take()
    assert claim.held
    claim.release()


def test_a_claim_ends_with_its_process_however_that_ends(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "taken\n"
        try:
            with pytest.raises(DeploymentError, match=rf"\(pid {other.pid}\)"):
                Claim(path).take()
        finally:
            other.kill()
    assert path.exists()
    assert not is_locked(path)
    claim = Claim(path)
    claim.take()
    claim.release()


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    claim = Claim(tmp_path / "file" / "data" / "lock")
    with pytest.raises(DeploymentError, match=r"cannot use data directory.*Not a directory"):
        claim.take()
    assert not claim.held
    claim.release()


def facts(path: Path, *processes: subprocess.Popen[bytes]) -> Path:
    listed = {str(p.pid): {"pid": p.pid, "command": p.args} for p in processes}
    path.write_text(json.dumps(listed))
    return path


def test_leftovers_are_those_that_still_run_their_command(tmp_path: Path) -> None:
    with (
        subprocess.Popen([sys.executable, "-c", SLEEP]) as service,
        subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as stubborn,
    ):
        assert stubborn.stdout is not None
        assert stubborn.stdout.readline() == b"deaf\n"
        path = facts(tmp_path / "services.json", service, stubborn)
        listed = json.loads(path.read_text())
        listed["took over"] = {"pid": os.getpid(), "command": ["/bin/else"]}
        listed["gone"] = {"pid": 2**22 + 1, "command": ["/bin/gone"]}
        path.write_text(json.dumps(listed))
        found = leftovers(path)
        assert {process.pid for process in found} == {service.pid, stubborn.pid}
        end_leftovers(found, 0.5)
        assert leftovers(path) == []
        for process in (service, stubborn):
            process.kill()  # only if it failed
            process.wait(60)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 1}', '{"a": {"pid": "x"}}', "null"])
def test_a_damaged_list_of_processes_names_nobody(tmp_path: Path, content: str) -> None:
    path = tmp_path / "services.json"
    path.write_text(content)
    assert leftovers(path) == []
    assert leftovers(tmp_path / "none.json") == []
