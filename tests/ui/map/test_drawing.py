"""Drawing the plan in a process of its own."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from streamsql.errors import DeploymentError
from ui.map.drawing import PlanDrawing


def draw(site: Path, folder: Path) -> Path:
    async def run() -> Path:
        drawing = PlanDrawing(site, folder)
        first, second = await asyncio.gather(drawing.script(), drawing.script())
        assert first == second
        return first

    return asyncio.run(run())


def tiny(**changes: Any) -> dict[str, Any]:
    levels = [{"ordinal": 0, "name": "</script><b>"}]
    pando = {"name": "x", "levels": levels, "bounds": [[0, 0], [1, 1]], "origin": None}
    return {"type": "FeatureCollection", "pando": {**pando, **changes}, "features": []}


def test_a_drawing_is_kept_until_the_map_changes(tmp_path: Path) -> None:
    site, folder = tmp_path / "site.geojson", tmp_path / "drawn"
    site.write_text(json.dumps(tiny()))
    first = draw(site, folder)
    written = first.stat().st_mtime_ns
    assert draw(site, folder) == first
    assert first.stat().st_mtime_ns == written
    site.write_text(json.dumps(tiny(bounds=[[0, 0], [2, 2]])))
    second = draw(site, folder)
    assert second != first
    assert list(folder.iterdir()) == [second]


def test_what_cannot_be_drawn_is_explained_and_tried_again(tmp_path: Path) -> None:
    site = tmp_path / "site.geojson"
    site.write_text("{}")
    drawing = PlanDrawing(site, tmp_path)

    async def run() -> Path:
        with pytest.raises(DeploymentError, match=r"site\.geojson"):
            await drawing.script()
        site.write_text(json.dumps(tiny()))
        return await drawing.script()

    assert asyncio.run(run()).is_file()


def test_a_missing_map_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="nowhere"):
        draw(tmp_path / "nowhere.geojson", tmp_path)
