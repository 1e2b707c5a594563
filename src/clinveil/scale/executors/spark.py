"""The Spark executor (extra `[spark]`): each item is one asynchronous job of one task.

The driver submits jobs without waiting, so it needs no thread per job: results arrive in order, few
items are read ahead, and no worker waits for the slowest job of a wave. The function is broadcast
once to each node and loaded once per worker. Spark's error reports, which may quote data, are not
shown.
"""

from __future__ import annotations

import logging
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from clinveil.core import (
    InputError,
    LostWorkers,
    MissingExtra,
    UsageError,
    at_most_cores,
    owner_only,
    remove,
)
from clinveil.scale.executors._cluster import (
    RemoteCall,
    RemoteOutcome,
    accepts_connections,
    environment,
    foreign,
    outcomes,
    own_signals,
    scratch,
)
from clinveil.scale.local import TRIES, Map

JAVA = 17  # the oldest version that Spark 4 supports
DEBIAN = "install Java (Debian: openjdk-17-jre-headless), or set JAVA_HOME"
WAITS = 120.0  # seconds until a cluster must provide its first executor
HERE = re.compile(r"local(-cluster)?(\[.*\])?")
MASTERS = re.compile(r"spark://[^/,]+:\d+(,[^/,]+:\d+)*|yarn|k8s://.+")
_FOREIGN = (
    "ModuleNotFoundError",
    "PYTHON_VERSION_MISMATCH",
    "AttributeError",
    "ImportError",
    "Cannot run program",
)
# Our jobs are small: optimising their code takes longer than running them.
FAST = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUIET = {
    "spark.app.name": "clinveil",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.task.maxFailures": str(TRIES),
    "spark.sql.catalogImplementation": "in-memory",
    "spark.io.encryption.enabled": "true",  # blocks written to disk contain notes
}
ALONE = {
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.authenticate": "true",
}
_LOADED: dict[str, RemoteCall] = {}  # in a worker: the job of the last map


@contextmanager
def open_spark(
    workers: int, address: str | None, tasks: int | None, ahead: int | None
) -> Iterator[Map]:
    """Open a map over Spark jobs; an active session of this process is used and left unchanged.

    Args:
        address: of a master (spark://HOST:PORT, yarn, k8s://…); None for Spark's local mode.

    Raises:
        MissingExtra: PySpark or a recent Java is missing. UsageError: an invalid address, or an
            address while this process has an active session. InputError: the cluster does not
            answer, or provides no executor.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra("pyspark", "spark", other_software=DEBIAN) from None
    with ExitStack() as stack:
        session = SparkSession.getActiveSession()
        if session is None:
            session = stack.enter_context(_started(at_most_cores(workers), address, tasks))
        elif address is not None:
            raise UsageError(
                "this process already has a Spark session", where="executor.address", hint="omit it"
            )
        yield partial(_map, session.sparkContext, tasks, ahead)


def _map(
    context: Any,
    tasks: int | None,
    ahead: int | None,
    function: Callable[[Any], Any],
    items: Iterable[Any],
    /,
) -> Iterator[Any]:
    """Yield the results in order. Raises LostWorkers; InputError if a worker cannot load the
    function or an item.
    """
    from pyspark import cloudpickle

    job = context.broadcast(cloudpickle.dumps(RemoteCall(function)))
    work = partial(_work, secrets.token_hex(8), job)

    def send(item: Any) -> Any:
        row = cloudpickle.dumps(item)
        with _translated():
            return context.parallelize([row], 1).mapPartitions(work)._jrdd.collectAsync()

    try:
        slots = context.defaultParallelism
        yield from outcomes(
            send,
            items,
            _fetched,
            lambda sent: sent.cancel(True),
            slots=slots,
            tasks=tasks,
            ahead=ahead,
        )
    finally:
        with suppress(Exception):
            job.destroy()


def _fetched(sent: Any) -> RemoteOutcome:
    from pyspark import cloudpickle
    from pyspark.serializers import CPickleSerializer

    with _translated():
        [[outcome]] = map(CPickleSerializer().loads, sent.get())  # Spark pickles lists of results
    result: RemoteOutcome = cloudpickle.loads(outcome)
    return result


@contextmanager
def _translated() -> Iterator[None]:
    """Replace Spark's errors, which may quote data, with ours."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    root = logging.getLogger()
    root.addFilter(_is_not_interrupt)
    try:
        yield
    except (Py4JError, PySparkException, OSError, EOFError) as error:
        message = str(error)
        raise (foreign() if any(name in message for name in _FOREIGN) else LostWorkers()) from None
    finally:
        root.removeFilter(_is_not_interrupt)


def _is_not_interrupt(record: logging.LogRecord) -> bool:
    """Return False for py4j's report of a call that Ctrl-C interrupted."""
    return "while sending command" not in record.getMessage()


def _work(name: str, job: Any, rows: Iterator[bytes]) -> Iterator[bytes]:
    """Run in a worker: apply the job to each row."""
    from pyspark import cloudpickle

    for row in rows:
        if name not in _LOADED:
            _LOADED.clear()
            _LOADED[name] = cloudpickle.loads(job.value)
        yield cloudpickle.dumps(_LOADED[name](cloudpickle.loads(row)))


@contextmanager
def _started(workers: int, address: str | None, tasks: int | None) -> Iterator[Any]:
    """Open a session, with its own Java process, for the block."""
    from pyspark.find_spark_home import _find_spark_home
    from pyspark.sql import SparkSession

    if address is not None and not HERE.fullmatch(address) and not MASTERS.fullmatch(address):
        raise UsageError(
            "not a Spark address",
            where="executor.address",
            hint="use spark://HOST:PORT, yarn or k8s://…",
        )
    if (
        address
        and address.startswith("spark://")
        and not accepts_connections(address.removeprefix("spark://"))
    ):
        raise _silent()
    here = address is None or HERE.fullmatch(address) is not None
    with scratch() as folder, _gateway(here=here) as gateway:
        settings = {
            "spark.master": address or f"local[{workers},{TRIES}]",
            "spark.sql.warehouse.dir": str(folder),
        }
        settings |= {"spark.cores.max": str(tasks)} if tasks else {}
        if here:
            settings |= ALONE | {"spark.local.dir": str(folder)}
            settings["spark.executor.extraJavaOptions"] = FAST
            settings["spark.authenticate.secret"] = secrets.token_hex(32)
        context = _context(QUIET | settings, gateway, here=here)
        session = SparkSession(context)
        logs = Path(_find_spark_home()) / "work" / context.applicationId
        try:
            yield session
        finally:
            with suppress(Exception):
                session.stop()
            if address and address.startswith("local-cluster"):  # it logs into Spark's own folder
                remove(logs)


def _context(settings: dict[str, str], gateway: Any, *, here: bool) -> Any:
    """Return a Spark context with executors. Raises InputError if the cluster does not answer or
    provides none.
    """
    from pyspark import SparkConf, SparkContext

    try:
        with own_signals(), environment({"PYSPARK_PYTHON": sys.executable} if here else {}):
            context = SparkContext(conf=SparkConf().setAll(list(settings.items())), gateway=gateway)
        context.setLogLevel("OFF")
        if not here:
            _wait(context)
        return context
    except InputError:
        context.stop()
        raise
    except Exception:  # noqa: BLE001  Java's own message is long, and may contain data
        if SparkContext._active_spark_context is not None:
            with suppress(Exception):
                SparkContext._active_spark_context.stop()
        raise _silent() from None


@contextmanager
def _gateway(*, here: bool) -> Iterator[Any]:
    """Run a Java process for the block, with its output discarded; an existing one is reused and
    kept.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        yield SparkContext._gateway
        return
    alone = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"} if here else {}
    try:
        with environment(alone), own_signals(), owner_only():
            nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            gateway = launch_gateway(
                SparkConf(loadDefaults=False).set("spark.driver.extraJavaOptions", FAST), nowhere
            )
    except (PySparkException, OSError):
        raise MissingExtra(f"a working Java {JAVA}", "spark", other_software=DEBIAN) from None
    try:
        yield gateway
    finally:
        with suppress(Exception):
            gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None
        _end(gateway.proc)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End Java by closing its input, or kill it after 20 s."""
    with suppress(OSError):
        assert process.stdin is not None
        process.stdin.close()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _silent() -> InputError:
    hint = (
        "use spark://HOST:PORT as shown on the master's page, and the same Spark version on both"
        " sides"
    )
    return InputError(
        "no working Spark cluster answers at this address", where="executor.address", hint=hint
    )


def _wait(context: Any) -> None:
    """Wait until the cluster provides an executor. Raises InputError if it does not."""
    if context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    until = time.monotonic() + WAITS
    while context._jsc.sc().getExecutorMemoryStatus().size() < 2:  # the driver counts as one
        if time.monotonic() > until:
            hint = "check that its workers are running and have free cores and memory"
            raise InputError(
                f"the cluster provided no executor in {WAITS:.0f} s",
                where="executor.address",
                hint=hint,
            )
        time.sleep(0.2)
