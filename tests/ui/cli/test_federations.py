"""Which federation a command means, with none, one or several on this machine."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.local.claim import Claim
from streamsql.errors import DeploymentError
from ui.cli.client import DEFAULT_ADDRESS, ConsoleClient
from ui.cli.federations import (
    LocalFederation,
    console_address,
    data_directory,
    entry_of,
    lock_of,
    running,
)

A, B = "http://127.0.0.1:8420", "http://127.0.0.1:8421"
Start = Callable[[str, str], Claim]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No federation was ever started here."""
    monkeypatch.delenv("PANDO_CONSOLE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def start(bare: Path) -> Iterator[Start]:
    """Writes what `pando up` writes, and holds its lock."""
    claims: list[Claim] = []

    def write(folder: str, console: str) -> Claim:
        federation = LocalFederation(console, bare / folder)
        claims.append(Claim(lock_of(federation.data)))
        claims[-1].take()
        for path in (federation.data / "console.json", entry_of(federation.data)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(federation.as_json())
        return claims[-1]

    yield write
    for claim in claims:
        claim.release()


def test_without_any_the_usual_address_is_tried() -> None:
    assert console_address(None) is None
    assert ConsoleClient(None).address == DEFAULT_ADDRESS
    with pytest.raises(DeploymentError, match=r"no federation runs here\nhint: .* --data"):
        data_directory(None, None)


def test_the_only_one_that_runs_is_found_from_any_folder(start: Start, bare: Path) -> None:
    claim = start("a", A)
    assert console_address(None) == A
    assert data_directory(None, None) == bare / "a"
    claim.release()  # as the system does when it is killed: the entries stay
    assert running() == []
    assert console_address(None) is None


def test_between_several_nothing_is_chosen(start: Start, bare: Path) -> None:
    start("a", A)
    last = start("b", B)
    for ask in (lambda: console_address(None), lambda: data_directory(None, None)):
        with pytest.raises(
            DeploymentError, match=r"2 federations run: .*8420.*8421.*\nhint: .*--console"
        ):
            ask()
    last.release()
    assert data_directory(None, None) == bare / "a"


def test_the_one_of_this_folder_comes_first(start: Start, bare: Path) -> None:
    start("a", A)
    here = start("pando-data", B)
    assert (console_address(None), data_directory(None, None)) == (B, bare / "pando-data")
    here.release()
    assert (console_address(None), data_directory(None, None)) == (A, bare / "a")


def test_what_is_named_is_meant_whatever_was_started_last(
    start: Start, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start("a", A)
    start("pando-data", B)
    monkeypatch.setenv("PANDO_CONSOLE", f"{A}/")
    assert (console_address(None), data_directory(None, None)) == (A, bare / "a")
    assert console_address(f"{B}/") == B
    assert data_directory(B, None) == bare / "pando-data"
    assert data_directory(None, Path("a")) == bare / "a"
    for other_name in ("http://localhost:8420", "127.0.0.1:8420", "http://[::1]:8420/"):
        assert data_directory(other_name, None) == bare / "a"


@pytest.mark.parametrize("address", ["http://elsewhere:8420", "http://127.0.0.1:9", "nonsense:x"])
def test_a_console_that_is_none_of_ours_is_never_taken_for_one_of_them(
    start: Start, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    start("a", A)
    with pytest.raises(
        DeploymentError, match="none of your federations on this machine has its console at"
    ):
        data_directory(address, None)
    monkeypatch.setenv("PANDO_CONSOLE", address)
    with pytest.raises(
        DeploymentError, match="none of your federations on this machine has its console at"
    ):
        data_directory(None, None)


def test_two_names_that_contradict_each_other_are_refused(start: Start) -> None:
    start("a", A)
    start("b", B)
    assert data_directory(A, Path("a")).name == "a"
    with pytest.raises(DeploymentError, match="remove one of the two"):
        data_directory(B, Path("a"))


@pytest.mark.parametrize("content", ["", "[]", "null", '{"console": 1}', "{", "\udcff"])
def test_damaged_entries_name_nobody(bare: Path, content: str) -> None:
    for path in (entry_of(bare / "x"), bare / "pando-data" / "console.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode(errors="surrogateescape"))
    assert console_address(None) is None
