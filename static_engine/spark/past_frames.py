"""The past as DataFrames: files of the lake where Spark reads them, else rows through this process.

Few rows are read here: a job that lists and opens a handful of files costs more than they do.
"""

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import DataType as SparkType
from pyspark.sql.types import IntegerType, StructField, StructType, TimestampType

from static_engine.evaluation.static_executor import EvaluationError
from static_engine.history.kept_batches import KeptLayout
from static_engine.history.past_readings import PastReadings
from static_engine.lake.kept_readings import EVENT_TIME, PLACE
from static_engine.lake.lake_scan import LakeScan
from static_engine.lowering.spark_types import SPARK_TYPES
from static_engine.sources.values.conversion import arrow_schema
from streamsql.algebra.operators import Scan
from streamsql.data.types import DataType

FEW_ROWS = 20_000
"""Up to so many rows of the past are read in this process."""
MOST_ROWS = 2_000_000
"""Rows of files that Spark does not reach by itself, which pass through this process."""


def past_frame(scan: Scan, past: PastReadings, session: SparkSession) -> DataFrame:
    """Return the rows of a scan of the past, columns c0, c1, … in the scan's order.

    Raises:
        LakeError: The lake cannot be read.
        EvaluationError: Spark does not reach the files, and they have too many rows.
    """
    found = past.scan(scan)
    if found.lake is not None and found.rows > FEW_ROWS:
        if all(path.startswith("file://") for path in found.lake.paths):
            return _of_files(found.lake, found.layout, session)
        if found.rows > MOST_ROWS:
            raise EvaluationError(
                f"the past of {scan.source} in this interval has up to {found.rows} rows, in "
                f"files that Spark does not reach; the max is {MOST_ROWS}",
                hint="ask for a shorter time, or keep the lake in a folder that all workers see",
            )
    rows = pa.Table.from_batches(past.batches(scan), arrow_schema(scan.schema))
    return session.createDataFrame(rows)


def _of_files(lake: LakeScan, layout: KeptLayout, session: SparkSession) -> DataFrame:
    types = dict(zip(layout.columns, layout.schema.dtypes, strict=True))
    fields = [StructField(name, _kept_type(name, types[name])) for name in layout.read]
    frame = session.read.schema(StructType(fields)).parquet(*lake.paths)
    if EVENT_TIME in layout.columns:  # managed tables have none
        time = fn.col(f"`{EVENT_TIME}`")
        since, until = (fn.timestamp_micros(fn.lit(bound)) for bound in (lake.since, lake.until))
        frame = frame.filter((time >= since) & (time < until))
    return frame.select(
        *(
            _plain(name, dtype).alias(f"c{number}")
            for number, (name, dtype) in enumerate(
                zip(layout.columns, layout.schema.dtypes, strict=True)
            )
        )
    )


def _kept_type(name: str, dtype: DataType) -> SparkType:
    if dtype == DataType.TIMESTAMP:
        return TimestampType()
    return IntegerType() if name == PLACE else SPARK_TYPES[dtype]


def _plain(name: str | None, dtype: DataType) -> Column:
    if name is None:
        return fn.lit(None).cast(SPARK_TYPES[dtype])
    column = fn.col(f"`{name}`")
    return (
        fn.unix_micros(column) if dtype == DataType.TIMESTAMP else column.cast(SPARK_TYPES[dtype])
    )
