"""The recipes of the connector file."""

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


# The rows of a trace begin so; the JSON object of a real one names the whole network.
K7 = """{"tx_length": 100, "stop_date": "2018-01-13 16:21:30", "location": "grenoble"}
datetime,src,dst,channel,mean_rssi,pdr,tx_count
2018-01-11 16:33:07,0,4,11,-53.2,1.0,
"""


@in_loop
async def test_a_k7_trace_that_grows(tmp_path: Path) -> None:
    told = recipe("A K7 trace that grows")
    trace = tmp_path / "grenoble.k7"
    trace.write_text(K7)
    async with serving(FileConnector(), {"folder": str(tmp_path)}, told.statement) as served:
        await served.until_rows(1)
        with trace.open("a") as file:
            file.write("2018-01-11 16:33:07,4,1,,,0.0,\n")  # a link over which nothing arrived
            file.write("2018-01-11 16:34:07,4,2,,,0.25,\n")
        await served.until_rows(2)
    assert as_csv(reading.values for reading in served.readings) == told.rows
    assert served.problems == []
