"""What a process says of its memory."""

import os
import sys
from pathlib import Path

import psutil
import pytest

from host import process_memory
from host.process_memory import address_space_bytes, resident_bytes


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it")
def test_it_is_what_the_system_says() -> None:
    seen = psutil.Process(os.getpid()).memory_info()
    assert resident_bytes() == pytest.approx(seen.rss, rel=0.1)
    assert address_space_bytes() == pytest.approx(seen.vms, rel=0.1)


@pytest.mark.parametrize("content", [None, "", "1", "a b c"])
def test_where_the_system_does_not_say_it_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    path = tmp_path / "statm"
    if content is not None:
        path.write_text(content)
    monkeypatch.setattr(process_memory, "_PAGES", path)
    assert resident_bytes() is None
