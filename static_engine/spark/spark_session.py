"""Spark sessions: the only place that creates or configures one.

A local master (`local[…]`) and a standalone cluster (`spark://…`) get a JVM that we start; any
other classic master goes through PySpark's own start, and `sc://` through Spark Connect.
"""

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from static_engine.spark.spark_jvm import (
    ARCHIVE_SECONDS,
    JvmSettings,
    SparkJvm,
    SparkStartError,
    spark_home,
    start_jvm,
)

_LOCAL_CORES = 8
_RESULT_SHARE = 8
"""Of the heap for one result: the task that makes it holds it twice, the driver once more."""
_BATCH_BYTES = 4 * 2**20
# Spark keeps finished work for web pages that we do not serve.
_KEPT_FOR_PAGES = (
    "spark.ui.retainedJobs",
    "spark.ui.retainedStages",
    "spark.ui.retainedTasks",
    "spark.sql.ui.retainedExecutions",
)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Settings of a session.

    Attributes:
        data_dir: Folder for logs, scratch files and the class archive.
        master: `local[*]`, `spark://…`, `sc://…` or another master of Spark's.
        memory: Heap limit of the driver JVM.
        archive: Whether to keep an archive of loaded classes for faster starts.
    """

    data_dir: Path
    master: str = "local[*]"
    memory: str = "1g"
    archive: bool = True

    @property
    def result_bytes(self) -> int:
        """Most bytes of one result."""
        return bytes_of(self.memory) // _RESULT_SHARE

    @property
    def is_local(self) -> bool:
        """Whether Spark runs on this machine and sees our files."""
        return self.master == "local" or self.master.startswith("local[")


class RunningSpark:
    """A session and the JVM behind it.

    Attributes:
        session: The session.
        is_local: Whether workers see our files.
        result_bytes: Most bytes of one result.
        description: For people, e.g. "Spark 4.3.0 on local[*], Java 21".
    """

    def __init__(self, session: SparkSession, settings: SessionSettings, jvm: SparkJvm | None):
        self.session = session
        self.is_local = settings.is_local
        self.result_bytes = settings.result_bytes
        self._jvm = jvm
        java = f", Java {jvm.java.version}" if jvm else ""
        self.description = f"Spark {session.version} on {settings.master}{java}"

    @property
    def jvm_pid(self) -> int | None:
        """The process id of the JVM we started, or None."""
        return self._jvm.pid if self._jvm else None

    @property
    def has_workers(self) -> bool:
        """Whether others than the driver do the work, as far as we can see."""
        return self._jvm is not None and not self.is_local

    def workers(self) -> int:
        """Return the number of executors without the driver.

        Raises:
            Py4JError: The JVM has ended.
        """
        context = self.session.sparkContext._jsc.sc()  # noqa: SLF001
        return len(context.statusTracker().getExecutorInfos()) - 1

    def usable(self) -> bool:
        """Whether JVM and session still work, as far as known without a query."""
        if self._jvm is None:
            return True  # a remote one is known by its answers only
        if not self._jvm.alive():
            return False
        try:
            return not self.session.sparkContext._jsc.sc().isStopped()  # noqa: SLF001
        except (Py4JError, OSError):
            return False

    def stop(self, *, patience: float = ARCHIVE_SECONDS) -> None:
        """End session and JVM; safe when the JVM is gone already.

        Args:
            patience: Seconds to wait for the class archive that the first JVM writes as it ends.
        """
        if self._jvm is None or self._jvm.alive():
            with contextlib.suppress(PySparkException, Py4JError, OSError):
                self.session.stop()
        _discard_gateway()
        if self._jvm is not None:
            self._jvm.stop(patience=patience)


def start_session(settings: SessionSettings, progress: Callable[[str], None]) -> RunningSpark:
    """Return a session; there is at most one classic session in a process.

    Args:
        settings: See `SessionSettings`.
        progress: Receives what is being done, on the caller's thread.

    Raises:
        NoJavaError: A JVM must be started and there is no usable Java.
        SparkStartError: The JVM or the cluster did not answer.
    """
    # Without this workers run `python3`, which may lack our packages.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    _silence_loggers()
    if settings.is_local or settings.master.startswith("spark://"):
        running = _start_own(settings, progress)
    else:
        progress(f"connecting to {settings.master}")
        running = RunningSpark(_build(settings), settings, None)
    progress("session ready")
    return running


def error_text(error: BaseException, limit: int = 400) -> str:
    """Return the first lines of an error, without Java's stack trace.

    The text of an error in the JVM is in the JVM, which may be gone.
    """
    try:
        text = str(error).strip()
    except (Py4JError, OSError):
        return f"{type(error).__name__}; the JVM has ended, see its log"
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("\tat ")]
    return " ".join(lines[:2])[:limit] or type(error).__name__


def _start_own(settings: SessionSettings, progress: Callable[[str], None]) -> RunningSpark:
    if settings.is_local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    jvm = start_jvm(
        JvmSettings(settings.data_dir, settings.memory, _properties(settings), settings.archive),
        progress,
    )
    progress("starting the session")
    # PySpark reads these once; left in place they would send children to our JVM.
    gateway = {"PYSPARK_GATEWAY_PORT": str(jvm.port), "PYSPARK_GATEWAY_SECRET": jvm.secret}
    os.environ.update(gateway, SPARK_HOME=str(spark_home()))
    try:
        with _own_signals():
            session = SparkSession.builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        _discard_gateway()
        jvm.stop(timeout=5)
        message = f"Spark did not open a session on {settings.master}: {error_text(error)}"
        raise SparkStartError(message, hint="check the address of the master") from error
    finally:
        for name in gateway:
            os.environ.pop(name, None)
    return RunningSpark(session, settings, jvm)


def _build(settings: SessionSettings) -> SparkSession:
    connect = settings.master.startswith("sc://")
    builder = SparkSession.builder
    builder = builder.remote(settings.master) if connect else builder.master(settings.master)
    for name, value in _query_properties().items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except ImportError as error:
        message = f"Spark Connect is not installed: {error}"
        raise SparkStartError(message, hint='pip install "pyspark[connect]"') from error
    except (PySparkException, Py4JError, OSError) as error:
        message = f"Spark did not open a session on {settings.master}: {error_text(error)}"
        raise SparkStartError(message, hint="check the address of the master") from error


def _query_properties() -> dict[str, str]:
    """Return what decides the meaning of queries, alike on every master."""
    return {
        "spark.sql.ansi.enabled": "true",  # nothing wraps around or turns NULL unasked
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(_BATCH_BYTES),
        "spark.sql.shuffle.partitions": str(min(os.cpu_count() or 2, _LOCAL_CORES)),
    }


def _properties(settings: SessionSettings) -> dict[str, str]:
    properties = {
        "spark.master": settings.master,
        "spark.app.name": "pando",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **dict.fromkeys(_KEPT_FOR_PAGES, "10"),
        "spark.driver.memory": settings.memory,
        # Spark compares what tasks have made already; SparkExecutor bounds what one task makes.
        "spark.driver.maxResultSize": f"{2 * settings.result_bytes}b",
        "spark.local.dir": str(settings.data_dir / "spark-scratch"),
        "spark.sql.warehouse.dir": str(settings.data_dir / "spark-warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        **_query_properties(),
    }
    if settings.is_local:
        properties["spark.driver.bindAddress"] = properties["spark.driver.host"] = "127.0.0.1"
    return properties


def bytes_of(memory: str) -> int:
    """Return a size as the JVM and Spark write it.

    Examples:
        >>> bytes_of("1g"), bytes_of("512m")
        (1073741824, 536870912)
    """
    units = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
    unit = units.get(memory[-1:].lower())
    return int(memory) if unit is None else int(memory[:-1]) * unit


def _silence_loggers() -> None:
    """Stop PySpark from printing a document or trace per failure; we report failures ourselves."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_not_by_py4j)  # py4j also writes to the root logger


def _not_by_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep our SIGINT handler, which SparkContext replaces when made on the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _discard_gateway() -> None:
    """Discard PySpark's gateway, so that a later session can have a new JVM.

    PySpark has no call for it: it assumes one JVM per process.
    """
    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is not None:
        with contextlib.suppress(Py4JError, OSError):
            gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
