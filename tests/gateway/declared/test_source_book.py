"""Orders outlive a restart; a damaged file keeps no gateway from starting."""

import errno
import logging
from pathlib import Path

import pytest

from gateway.declared import source_book
from gateway.declared.source_book import SourceBook
from gateway.testing_connectors import declared
from streamsql.errors import WireError


def test_what_was_put_is_there_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "book.json"
    book = SourceBook(file)
    assert book.put(declared())
    assert not book.put(declared()), "the same again is no news"
    assert book.put(declared("noise"))
    assert book.put(declared(version=2))
    book.save()
    assert SourceBook(file).all() == (declared(version=2), declared("noise"))
    assert book.drop("climate")
    assert not book.drop("climate")
    book.save()
    assert SourceBook(file).all() == (declared("noise"),)


def test_nothing_new_is_not_written(tmp_path: Path) -> None:
    book = SourceBook(tmp_path / "book.json")
    book.save()
    assert not (tmp_path / "book.json").exists()


@pytest.mark.parametrize("content", [b"", b"{", b'[{"version": 1}]', b"\xff\xfe"])
def test_a_damaged_file_is_set_aside(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "book.json"
    file.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        book = SourceBook(file)
    assert book.all() == ()
    assert (tmp_path / "book.json.broken").read_bytes() == content
    assert "set aside as book.json.broken" in caplog.text
    book.put(declared())
    book.save()
    assert SourceBook(file).find("climate") == declared()


def test_a_disk_that_refuses_is_said_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "book.json"
    book = SourceBook(file)
    book.put(declared())

    def full(*_given: object) -> bool:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(source_book, "replace_file", full)
        book.save()
    assert book.problem == ("the declared sources cannot be kept on disk: No space left on device")
    book.save()
    assert book.problem == ""
    assert SourceBook(file).find("climate") == declared()


def test_there_is_room_for_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_book, "MAX_SOURCES", 1)
    book = SourceBook(tmp_path / "book.json")
    book.put(declared())
    with pytest.raises(WireError, match="more than 1 sources"):
        book.put(declared("noise"))
    assert book.put(declared(version=2)), "one that is known may change"
