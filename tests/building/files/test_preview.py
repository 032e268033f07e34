"""The preview is a drawing of everything on all levels."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from building.files.preview import main, render_svg
from building.model.site_model import Site

SVG = "{http://www.w3.org/2000/svg}"


def test_everything_is_drawn(sample: Site) -> None:
    drawing = ET.fromstring(render_svg(sample))  # noqa: S314 - our own output
    titles = [title.text for title in drawing.iter(f"{SVG}title")]
    for machine in sample.machines:
        assert machine.mid in titles
    for door in sample.doors:
        assert door.id in titles
    assert len(list(drawing.iter(f"{SVG}g"))) == 3
    assert drawing.get("width") == "1400"


def test_everything_is_inside_the_page(sample: Site) -> None:
    drawing = ET.fromstring(render_svg(sample, width=700))  # noqa: S314 - our own output
    height = float(drawing.get("height", "0")) / 3
    for circle in drawing.iter(f"{SVG}circle"):
        assert 0 <= float(circle.get("cx", "-1")) <= 700
        assert 0 <= float(circle.get("cy", "-1")) <= height + 1


def test_the_command_writes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.svg"
    assert main([str(target)]) == 0
    assert target.read_text(encoding="utf-8").startswith("<svg")
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
