"""Functions that travel to Spark's workers by value."""

import subprocess
import sys
from pathlib import Path

import msgspec
from pyspark import cloudpickle

from static_engine.lowering import python_functions
from streamsql.algebra.scalar_functions import scalar
from streamsql.data.types import DataType

WORKER = """
import pickle, sys
cast, integer, matches = pickle.load(open(sys.argv[1], "rb"))
print(cast(2.5, integer), matches("aab", "^(a|aa)*b$"), "streamsql" in sys.modules)
"""


def test_functions_can_be_sent_after_a_plan_was_decoded(tmp_path: Path) -> None:
    # Never loaded in this process: what is sent by value would replace parts of the class here.
    assert python_functions.PythonFunction is not None
    assert msgspec.convert("INTEGER", DataType) is DataType.INTEGER
    sent = tmp_path / "sent"
    matches = scalar.FUNCTIONS["REGEXP_LIKE"]  # it remembers the patterns it has met
    assert matches("aab", "^(a|aa)*b$")
    data = cloudpickle.dumps((scalar.cast, DataType.INTEGER, matches))  # type: ignore[no-untyped-call]
    sent.write_bytes(data)
    worker = subprocess.run(
        [sys.executable, "-c", WORKER, str(sent)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert worker.returncode == 0, worker.stderr
    assert worker.stdout.split() == ["2", "True", "False"]
