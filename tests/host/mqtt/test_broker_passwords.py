"""A password that changes: the old one is good until the broker takes the new one."""

from pathlib import Path

import pytest

from host.mqtt.broker_passwords import PasswordFile, password_file
from streamsql.errors import DeploymentError


def written(folder: Path, content: str) -> Path:
    file = folder / "broker_password"
    file.write_text(content, encoding="utf-8")
    return file


def test_one_password_is_tried_again_and_again(tmp_path: Path) -> None:
    passwords = PasswordFile(written(tmp_path, "one\n"))
    for _ in range(3):
        assert passwords.next() == "one"
        passwords.refused()


def test_the_new_one_is_tried_first_and_the_old_one_when_it_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "old\n")
    passwords = PasswordFile(file)
    passwords.accepted()
    passwords.replace("new")
    assert file.read_text() == "new\nold\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert passwords.next() == "new"
    passwords.refused()
    assert passwords.next() == "old"
    passwords.accepted()
    assert file.read_text() == "new\nold\n", "the broker has the old one still"
    passwords.refused()
    passwords.accepted()
    assert file.read_text() == "new\n"
    assert passwords.next() == "new"


def test_a_crash_between_two_passwords_leaves_both(tmp_path: Path) -> None:
    file = written(tmp_path, "old\n")
    PasswordFile(file).replace("new")
    after = PasswordFile(file)
    assert after.next() == "new"
    after.refused()
    assert after.next() == "old"


def test_a_second_change_keeps_the_one_that_the_broker_takes(tmp_path: Path) -> None:
    file = written(tmp_path, "old\n")
    passwords = PasswordFile(file)
    passwords.replace("lost")
    passwords.refused()
    passwords.accepted()
    passwords.replace("new")
    assert file.read_text() == "new\nold\n"


@pytest.mark.parametrize("content", ["", "\n", "a\nb\nc\n", "x" * 5_000])
def test_a_file_that_holds_no_password_is_refused_and_not_shown(
    tmp_path: Path, content: str
) -> None:
    with pytest.raises(DeploymentError, match="one line") as refusal:
        PasswordFile(written(tmp_path, content))
    assert "xxx" not in str(refusal.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match=r"password file .*: No such file"):
        password_file(str(tmp_path / "none"))
    assert password_file("") is None


@pytest.mark.parametrize("password", ["", "a\nb", "\0"])
def test_a_password_of_two_lines_is_never_written(tmp_path: Path, password: str) -> None:
    file = written(tmp_path, "old\n")
    with pytest.raises(ValueError, match="one line"):
        PasswordFile(file).replace(password)
    assert file.read_text() == "old\n"


def test_what_somebody_else_has_written_is_tried_after_a_refusal(tmp_path: Path) -> None:
    file = written(tmp_path, "old\n")
    passwords = PasswordFile(file)
    written(tmp_path, "joined again\n")
    assert passwords.next() == "old"
    passwords.refused()
    assert passwords.next() == "joined again"
    file.unlink()
    passwords.refused()
    assert passwords.next() == "joined again"
