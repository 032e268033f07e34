"""Spark sessions: the only place that creates or configures one.

We start the driver's JVM, whatever its master; only `sc://…` is a driver that others started.
"""

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from static_engine.spark.session_properties import (
    PYTHON,
    check_properties,
    driver_properties,
    query_properties,
)
from static_engine.spark.spark_jvm import (
    ARCHIVE_SECONDS,
    JvmSettings,
    SparkJvm,
    SparkStartError,
    spark_home,
    start_jvm,
)
from static_engine.spark.spark_masters import MasterKind, master_kind
from static_engine.spark.spark_work import WORKER_SECONDS, Pool, SparkWork
from static_engine.spark.stuck_tasks import STUCK_SECONDS, is_stuck, tasks_left

log = logging.getLogger(__name__)

_RESULT_SHARE = 8
"""Of the heap for one result: the task that makes it holds it twice, the driver once more."""
_CONNECT_RETRIES = 4
"""Of a request to a Connect server, about 5 s; PySpark's own 15 take ten minutes."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Settings of a session.

    Attributes:
        data_dir: Folder for logs, scratch files and the class archive.
        master: `local[*]`, `spark://…`, `sc://…` or another master of Spark's.
        memory: Heap limit of the driver JVM.
        archive: Whether to keep an archive of loaded classes for faster starts.
        properties: Further properties of Spark's, as `check_properties` takes them.
    """

    data_dir: Path
    master: str = "local[*]"
    memory: str = "1g"
    archive: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def result_bytes(self) -> int:
        """Most bytes of one result."""
        return bytes_of(self.memory) // _RESULT_SHARE

    @property
    def kind(self) -> MasterKind:
        """Where the work is done."""
        return master_kind(self.master)

    @property
    def is_local(self) -> bool:
        """Whether Spark runs on this machine and sees our files."""
        return self.kind is MasterKind.LOCAL


class RunningSpark:
    """A session and the JVM behind it.

    Attributes:
        session: The session.
        is_local: Whether workers see our files.
        maintenance: Held by the work that runs in the pool of that name.
        result_bytes: Most bytes of one result.
        description: For people, e.g. "Spark 4.3.0 on local[*], Java 21".
    """

    def __init__(self, session: SparkSession, settings: SessionSettings, jvm: SparkJvm | None):
        self.session = session
        self.maintenance = threading.Lock()
        self.is_local = settings.is_local
        self.result_bytes = settings.result_bytes
        self._jvm = jvm
        self._watch: threading.Thread | None = None
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

    @property
    def is_remote(self) -> bool:
        """Whether the driver is a Spark Connect server."""
        return self._jvm is None

    def work(
        self,
        pool: Pool,
        name: str,
        *,
        worker_seconds: float = WORKER_SECONDS,
        max_seconds: float | None = None,
    ) -> SparkWork:
        """Return work to enter on the thread that calls Spark; see `SparkWork`."""
        return SparkWork(self, pool, name, worker_seconds=worker_seconds, max_seconds=max_seconds)

    def workers(self) -> int:
        """Return the number of executors without the driver.

        Raises:
            Py4JError: The JVM has ended.
        """
        context = self.session.sparkContext._jsc.sc()  # noqa: SLF001
        return len(context.statusTracker().getExecutorInfos()) - 1

    def end_cancelled(self) -> None:
        """See to it that cancelled tasks give their cores back; returns at once.

        A JVM of ours in which one stays for `STUCK_SECONDS` is ended, and with it all its work.
        """
        if self._jvm is None or not self.is_local or (self._watch and self._watch.is_alive()):
            return
        jvm, left = self._jvm, tasks_left(self.session)

        def end_stuck() -> None:
            with contextlib.suppress(Py4JError, OSError):  # the JVM has ended
                if is_stuck(left, seconds=STUCK_SECONDS):
                    log.error("cancelled work goes on after %g s: Spark is ended", STUCK_SECONDS)
                    jvm.kill()

        self._watch = threading.Thread(target=end_stuck, name="stuck-tasks", daemon=True)
        self._watch.start()

    @property
    def is_gone(self) -> bool:
        """State of the JVM that we started; of a Connect server's nothing is known."""
        return self._jvm is not None and not self._jvm.alive()

    def usable(self) -> bool:
        """Whether JVM and session still work, as far as known without a query."""
        if self._jvm is None:
            return _answers(self.session)
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
        DeploymentError: Master or properties are none that Spark has.
    """
    check_properties(settings.properties)
    # Without this workers run `python3`, which may lack our packages.
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = settings.properties.get(PYTHON, sys.executable)
    _silence_loggers()
    if settings.kind.starts_jvm:
        running = _start_own(settings, progress)
    else:
        progress(f"connecting to {settings.master}")
        running = RunningSpark(_connect(settings), settings, None)
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
    ours = driver_properties(
        settings.kind, settings.master, settings.memory, settings.result_bytes, settings.data_dir
    )
    properties = {**ours, **settings.properties}
    jvm = start_jvm(
        JvmSettings(settings.data_dir, settings.memory, properties, settings.archive), progress
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


def _connect(settings: SessionSettings) -> SparkSession:
    session: SparkSession | None = None
    try:
        session = SparkSession.builder.remote(settings.master).create()
        _bound_retries(session)
        for name, value in {**query_properties(), **settings.properties}.items():
            session.conf.set(name, value)  # the first one finds out whether the server is there
    except ImportError as error:
        message = f"Spark Connect is not installed: {error}"
        raise SparkStartError(message, hint='pip install "pando[connect]"') from error
    except (PySparkException, OSError) as error:
        if session is not None:
            session.stop()
        message = f"Spark did not open a session on {settings.master}: {error_text(error)}"
        raise SparkStartError(message, hint="check the address of the server") from error
    return session


def _bound_retries(session: SparkSession) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415 - an extra's

    policy = DefaultPolicy(max_retries=_CONNECT_RETRIES, max_backoff=2_000)
    session.client.set_retry_policies([policy])


def _answers(session: SparkSession) -> bool:
    """Whether a Connect server answers and knows the session."""
    try:
        session.conf.get("spark.sql.ansi.enabled")
    except (PySparkException, OSError, ValueError):  # ValueError: its channel is closed
        return False
    return True


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
