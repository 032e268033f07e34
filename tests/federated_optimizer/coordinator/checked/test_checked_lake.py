"""The lake and stored tables for one principal: what they may read and do, and no more."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from federated_optimizer.coordinator.checked.checked_lake import CheckedLake
from federated_optimizer.coordinator.contract.audit_model import Outcome
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.rights.statement_roles import NotAllowedError
from streamsql.wire.stored_tables.lake_messages import (
    LakeAnswer,
    LakeRequest,
    LakeTable,
    LakeTask,
    TableFigures,
)
from tests.ui.kept_readings import FakeLake


class Noted:
    """Keeps what is noted for the audit."""

    def __init__(self, entries: list[Any]) -> None:
        self.entries = entries

    def note(self, *entry: Any) -> None:
        self.entries.append(entry)


def ask(
    role: Role, task: LakeTask, table: str = "", entries: list[Any] | None = None
) -> tuple[LakeAnswer, Noted]:
    """Ask as somebody who may read `open` and nothing else."""
    lake, noted = FakeLake(), Noted([] if entries is None else entries)
    lake.stored = (TableFigures("open", "csv"), TableFigures("closed", "sql"))
    lake.tables = tuple(
        LakeTable(namespace, name)
        for namespace in ("readings", "tables", "rollups")
        for name in ("open", "closed", "open__1h")
    )
    shared: Any = SimpleNamespace(audit=noted)
    checked = CheckedLake(lake, shared, Principal("ann", role), lambda name: name == "open")
    return asyncio.run(checked.ask(LakeRequest("", 0, task, table))), noted


def test_tables_that_may_not_be_read_are_not_listed() -> None:
    answer, _ = ask(Role.ANALYST, LakeTask.STORED)
    assert [table.name for table in answer.stored] == ["open"]
    answer, _ = ask(Role.ANALYST, LakeTask.STATUS)
    assert [(t.namespace, t.name) for t in answer.tables] == [
        ("readings", "open"),
        ("tables", "open"),
        ("rollups", "open"),
        ("rollups", "open__1h"),
    ]


@pytest.mark.parametrize("task", [LakeTask.STORED, LakeTask.SAMPLE])
def test_a_table_that_may_not_be_read_is_not_looked_at(task: LakeTask) -> None:
    answer, _ = ask(Role.ANALYST, task, "open")
    assert all(table.name == "open" for table in answer.stored)
    with pytest.raises(NotAllowedError, match="may not read") as refused:
        ask(Role.ANALYST, task, "closed")
    assert "GRANT SELECT" in (refused.value.hint or "")
    with pytest.raises(NotAllowedError):
        ask(Role.VIEWER, task, "open")


def test_who_has_looked_at_rows_is_noted() -> None:
    _, noted = ask(Role.ANALYST, LakeTask.STORED, "open")
    assert [entry[1:4] for entry in noted.entries] == [("look at rows of", "open", Outcome.DONE)]
    entries: list[Any] = []
    with pytest.raises(NotAllowedError):
        ask(Role.ANALYST, LakeTask.SAMPLE, "closed", entries)
    assert [entry[1:4] for entry in entries] == [("look at rows of", "closed", Outcome.REFUSED)]


def test_care_is_for_operators_and_noted() -> None:
    with pytest.raises(NotAllowedError):
        ask(Role.ANALYST, LakeTask.COMPACT, "open")
    _, noted = ask(Role.OPERATOR, LakeTask.COMPACT, "open")
    assert [entry[1] for entry in noted.entries] == ["compact the lake"]
