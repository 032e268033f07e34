"""Pages and what they load: all of it from the console itself."""

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

import ui.app
from ui.pages.examples import BUILDING, TRACE, Example

PAGES = (
    "/",
    "/queries",
    "/monitor",
    "/network",
    "/gateways",
    "/data",
    "/sources/new",
    "/alarms",
    "/history",
)
VENDOR = ui.app.STATIC / "vendor"


@pytest.mark.parametrize("path", PAGES)
def test_pages_name_no_other_host(client: httpx.Client, addresses: Any, path: str) -> None:
    page = client.get(path)
    assert page.status_code == 200
    assert addresses(page.text) == []
    assert 'aria-current="page"' in page.text


@pytest.mark.parametrize("path", PAGES)
def test_everything_a_page_loads_is_there(client: httpx.Client, path: str) -> None:
    wanted = re.findall(r'(?:src|href)="(/(?:static|map)/[^"]+)"', client.get(path).text)
    assert wanted
    for address in wanted:
        assert client.get(address).status_code == 200, address


def test_our_scripts_import_what_exists_and_call_no_other_host(addresses: Any) -> None:
    scripts = [p for p in ui.app.STATIC.rglob("*.js") if VENDOR not in p.parents]
    assert len(scripts) > 10
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        assert addresses(text) == [], script
        for name in re.findall(r'from "([^"]+)"', text):
            base = ui.app.STATIC.parent if name.startswith("/") else script.parent
            assert Path(base, name.lstrip("/")).is_file(), f"{script}: {name}"


def test_style_sheets_load_only_what_lies_beside_them() -> None:
    for sheet in ui.app.STATIC.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert "@import" not in text
        for name in re.findall(r"url\(([^)#]+)\)", text):
            assert (sheet.parent / name.strip("\"'")).is_file(), f"{sheet}: {name}"


def test_what_is_vendored_has_its_licences() -> None:
    licences = (VENDOR / "LICENSES.txt").read_text(encoding="utf-8")
    for name in ("leaflet ", "leaflet-ant-path ", "codemirror ", "@codemirror/lang-sql "):
        assert f"{name}" in licences


@pytest.mark.parametrize("example", BUILDING, ids=lambda e: e.title)
def test_examples_of_a_building_are_right(coordinator: Any, example: Example) -> None:
    assert asyncio.run(coordinator.validate(example.text)).diagnoses == ()


@pytest.mark.parametrize("example", TRACE, ids=lambda e: e.title)
def test_examples_of_a_trace_are_right(trace_console: Any, example: Example) -> None:
    assert asyncio.run(trace_console.coordinator.validate(example.text)).diagnoses == ()


def test_examples_are_offered_and_carried_as_data(client: httpx.Client) -> None:
    page = client.get("/queries").text
    for example in BUILDING:
        assert example.title in page
    assert "<script>" not in page
