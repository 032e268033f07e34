"""A file that a service keeps for itself never keeps it from starting."""

import logging
from pathlib import Path

import pytest

from host.files.json_file import read_json, read_kept
from streamsql.errors import DeploymentError

Numbers = dict[str, int]


def test_what_was_kept_is_read(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    file.write_text('{"a": 1}')
    assert read_kept(file, Numbers, "numbers", max_bytes=100) == {"a": 1}


def test_there_need_not_be_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert read_kept(tmp_path / "kept.json", Numbers, "numbers", max_bytes=100) is None
    assert caplog.text == ""


@pytest.mark.parametrize("content", [b"", b'{"a": "one"}', b"\xff", b'{"a": 1}' + b" " * 100])
def test_a_damaged_or_too_large_file_is_set_aside(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "kept.json"
    file.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert read_kept(file, Numbers, "numbers", max_bytes=100) is None
    assert not file.exists()
    assert (tmp_path / "kept.json.broken").read_bytes() == content
    assert "set aside as kept.json.broken" in caplog.text


def test_a_file_that_an_operator_writes_is_refused_instead(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"a": "one"}')
    with pytest.raises(DeploymentError, match=r"settings .*: Expected `int`"):
        read_json(file, Numbers, "settings")
    assert file.exists()
