"""`python -m gateway` under libfaketime, whose version 0.9.10 refuses Python's `time.sleep`.

It cannot sleep until a time of the monotonic clock unless it fakes that clock, too; waiting on no
file at all is left alone.
"""

import runpy
import select
import time


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


if __name__ == "__main__":
    time.sleep = _sleep  # type: ignore[assignment]
    runpy.run_module("gateway", run_name="__main__", alter_sys=True)
