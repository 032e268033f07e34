"""SQL and a catalog in, bound plan text out: every case of `tests/golden/plans`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from streamsql.algebra.explain import explain_plan
from streamsql.catalog.catalog import Catalog
from tests.streamsql.from_text import bound_query, catalog_of

FOLDER = Path(__file__).parents[3] / "golden" / "plans"
FILES = sorted(FOLDER.glob("*.yaml"))
CASES = 168


def load(path: Path) -> dict[str, Any]:
    content = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    assert isinstance(content, dict)
    return content


def bound(sql: str, catalog: Catalog) -> dict[str, Any]:
    query = bound_query(sql, catalog)
    result: dict[str, Any] = {"schema": str(query.schema)}
    if query.emit != "relation":
        result["emit"] = query.emit
    if query.warnings:
        result["warnings"] = list(query.warnings)
    result["plan"] = explain_plan(query.plan) + "\n"
    return result


class _Dumper(yaml.SafeDumper):
    pass


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def rewrite(path: Path, content: dict[str, Any]) -> None:
    catalog = catalog_of(content["catalog"], library=True)
    content["cases"] = [
        {"name": case["name"], "sql": case["sql"], **bound(case["sql"], catalog)}
        for case in content["cases"]
    ]
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
    path.write_text(text, encoding="utf-8")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        if metafunc.config.getoption("update_golden", default=False):
            for path in FILES:
                rewrite(path, load(path))
        contents = {path.stem: load(path) for path in FILES}
        cases = [(name, case) for name, content in contents.items() for case in content["cases"]]
        found = [(contents[name]["catalog"], case) for name, case in cases]
        names = [f"{name}-{case['name']}" for name, case in cases]
        metafunc.parametrize(("catalog_text", "case"), found, ids=names)


def test_bound_plan(catalog_text: str, case: dict[str, Any]) -> None:
    expected = {key: value for key, value in case.items() if key not in ("name", "sql")}
    assert bound(case["sql"], catalog_of(catalog_text, library=True)) == expected


def test_number_of_cases() -> None:
    names = [(path.stem, case["name"]) for path in FILES for case in load(path)["cases"]]
    assert len(names) == len(set(names)) == CASES
