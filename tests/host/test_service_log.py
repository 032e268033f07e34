"""Log lines of services."""

import subprocess
import sys

import pytest

PROGRAM = """
import logging, sys
from host.service_log import log_to_stderr
log_to_stderr(sys.argv[1])
logging.getLogger("httpx").info("HTTP Request: GET http://plug/now?key=s3cret")
logging.getLogger("httpx").warning("slow")
logging.getLogger("gateway").info("query q1 installed")
"""


@pytest.mark.parametrize(("level", "requests"), [("info", False), ("debug", True)])
def test_requests_of_libraries_are_logged_for_debugging_only(level: str, requests: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, level], capture_output=True, text=True, check=True
    )
    assert ("HTTP Request" in done.stderr) == requests
    assert " WARNING slow" in done.stderr
    assert " INFO query q1 installed" in done.stderr
