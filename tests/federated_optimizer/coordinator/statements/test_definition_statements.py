"""Files that tables name, and what is shown of databases, with a real coordinator."""

import json
from pathlib import Path
from typing import Any

import pytest

from streamsql.catalog.open_folders import OpenFolders
from streamsql.errors import BindingError
from ui.api.objects import result_object

COLUMNS = "CREATE TABLE desks (desk TEXT PRIMARY KEY)"


@pytest.mark.parametrize(
    "options",
    [
        "source = 'csv', path = '/etc/passwd'",
        "source = 'csv', path = '../run/console.json'",
        "source = 'csv', path = '/d/site/tables/../../run/x.csv'",
        "source = 'parquet', path = '/'",
        "source = 'json', path = '/d/state'",
        "source = 'sql', url = 'sqlite:////d/state/console/catalog.db', table = 't'",
        "source = 'sql', url = 'sqlite:///../../state/catalog.db', table = 't'",
        "source = 'sql', url = 'sqlite+pysqlite:////etc/x', table = 't'",
    ],
)
def test_a_table_outside_of_open_folders_is_refused_when_it_is_defined(
    harness: Any, options: str
) -> None:
    async def scenario(federation: Any) -> None:
        folders = OpenFolders("/d/site/tables", ("/srv/me",), ("/d",))
        coordinator = await federation.coordinator(folders=folders)
        with pytest.raises(
            BindingError, match="is outside the folders that are open to tables"
        ) as caught:
            await coordinator.execute(f"{COLUMNS} WITH ({options})")
        assert caught.value.code == "outside_folders"
        assert caught.value.span is not None
        assert all(definition.name != "desks" for definition in coordinator.definitions())

    harness.run(scenario)


@pytest.mark.parametrize(
    "options",
    [
        "source = 'csv', path = 'rooms.csv'",
        "source = 'csv', path = '/srv/me/rooms.csv'",
        "source = 'sql', url = 'sqlite:///a.db', table = 't'",
        "source = 'sql', url = 'secret:a', table = 't'",
        "source = 'sql', url = 'postgresql://u@h/d', table = 't'",
    ],
)
def test_one_inside_is_taken(harness: Any, options: str) -> None:
    async def scenario(federation: Any) -> None:
        folders = OpenFolders("/d/site/tables", ("/srv/me",), ("/d",))
        coordinator = await federation.coordinator(folders=folders)
        await coordinator.execute(f"{COLUMNS} WITH ({options})")

    harness.run(scenario)


def test_nothing_that_is_asked_shows_a_password(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        url = "postgresql://reader:s3cret@db.example/base"
        options = f"source = 'sql', url = '{url}', table = 'desks'"
        results = list(await coordinator.execute(f"{COLUMNS} WITH ({options})"))
        kinds = [f"EXPLAIN (TYPE {t}, FORMAT {f}) SELECT * FROM desks"
                 for t in ("federated", "logical") for f in ("text", "json", "dot")]  # fmt: skip
        for text in ("SHOW TABLES", "DESCRIBE desks", "SHOW QUERIES", *kinds):
            results += await coordinator.execute(text)
        for result in results:
            assert "s3cret" not in json.dumps(result_object(result), default=str)

    harness.run(scenario)


def test_the_catalog_is_for_its_owner_only(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        catalog = Path(federation.folder) / "catalog.db"
        catalog.touch(0o644)
        catalog.chmod(0o644)
        await federation.coordinator(define_schema=True)
        files = list(catalog.parent.glob("catalog.db*"))
        assert len(files) > 1
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}

    harness.run(scenario)
