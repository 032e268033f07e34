"""The recipe of the connector file."""

from pathlib import Path

from gateway.connectors.file.file_connector import FileConnector
from tests.docs.recipes import as_csv, recipe
from tests.gateway.connectors.serving import in_loop, serving

DAY = "Zeit;Kreis;Vorlauf;Pumpe\r\n01.06.2026 12:00;Süd;41,5;1\r\n01.06.2026 12:00;Nord;38,0;0\r\n"


@in_loop
async def test_a_data_logger_that_writes_csv_files(tmp_path: Path) -> None:
    told = recipe("A data logger that writes CSV files")
    (tmp_path / "heating-2026-06-01.csv").write_bytes(DAY.encode("cp1252"))
    (tmp_path / "cooling-2026-06-01.csv").write_bytes(DAY.encode("cp1252"))
    async with serving(FileConnector(), {"folder": str(tmp_path)}, told.statement) as served:
        await served.until_rows(2)
    assert as_csv(reading.values for reading in served.readings) == told.rows
    assert served.problems == []
