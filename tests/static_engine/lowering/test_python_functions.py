"""Functions that travel to Spark's workers by value."""

import msgspec
from pyspark import cloudpickle

from static_engine.lowering import python_functions
from streamsql.algebra import scalar
from streamsql.data.types import DataType


def test_functions_can_be_sent_after_a_plan_was_decoded() -> None:
    assert python_functions.PythonFunction is not None
    assert msgspec.convert("INTEGER", DataType) is DataType.INTEGER
    sent = cloudpickle.loads(cloudpickle.dumps(scalar.cast))  # type: ignore[no-untyped-call]
    assert sent(2.5, DataType.INTEGER) == 2
