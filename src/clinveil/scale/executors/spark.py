"""Spark (extra `[spark]`): each item is one row of a DataFrame, and a job of its own, through `mapInArrow`.

A job an item, from as many threads as there are workers, rather than jobs of many rows: results come in order, few
items are read ahead, and no worker waits for the slowest of a wave. The function is broadcast once to each node, and
each worker loads it once. Rows and results are bytes of Spark's own serializer. Spark's reports, which quote what a
worker had in hand, are not shown.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from clinveil.core.errors import InputError, LostWorkers, MissingExtra, UsageError
from clinveil.core.files import owner_only, remove
from clinveil.scale.executor import executors
from clinveil.scale.executors._job import TRIES, Job, foreign
from clinveil.scale.executors._surroundings import anybody_at, environment, own_signals, scratch
from clinveil.scale.local import Map, behind

JAVA = 17  # the oldest that Spark 4 runs on
DEBIAN = "Java is Debian's openjdk-17-jre-headless, or what JAVA_HOME names"
WAITS = 120.0  # seconds until a cluster gives its first executor
HERE = re.compile(r"local(-cluster)?(\[.*\])?")
MASTERS = re.compile(r"spark://[^/,]+:\d+(,[^/,]+:\d+)*|yarn|k8s://.+")
_VERSION = re.compile(rb'version "(?:1\.)?(\d+)')
_FOREIGN = ("ModuleNotFoundError", "PYTHON_VERSION_MISMATCH", "AttributeError", "ImportError", "Cannot run program")
# Our jobs are tiny: compiling them, in Java's compiler or in Spark's, takes longer than they do.
FAST = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUIET = {
    "spark.app.name": "clinveil",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.task.maxFailures": str(TRIES),
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.io.encryption.enabled": "true",  # blocks that reach a disk hold notes
}
ALONE = {"spark.driver.host": "localhost", "spark.driver.bindAddress": "127.0.0.1", "spark.authenticate": "true"}
_LOADED: dict[str, Job] = {}  # in a worker: the job of the last map


@executors.register("spark")
@contextmanager
def spark(workers: int, address: str | None, ahead: int | None) -> Iterator[Map]:
    """A map over Spark jobs; a Spark that this process uses already is used, and left as it is.

    Args:
        address: of a master (spark://HOST:PORT, yarn, k8s://…); None for Spark's local mode.

    Raises:
        MissingExtra: no PySpark, or no Java that is new enough. UsageError: an address of another kind, or one where
            this process uses a Spark already. InputError: no Spark answers there, or it gives no executor.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra("pyspark", "spark", more=DEBIAN) from None
    with ExitStack() as stack:
        session = SparkSession.getActiveSession()
        if session is None:
            session = stack.enter_context(_started(workers, address))
        elif address is not None:
            raise UsageError("a Spark is in use in this process", where="--address", hint="leave --address out")
        yield partial(_spread, session, workers, ahead or 2 * workers)


def _spread(
    session: Any, workers: int, ahead: int, function: Callable[[Any], Any], items: Iterable[Any], /
) -> Iterator[Any]:
    """The results in order. Raises LostWorkers; InputError where a worker cannot load what it is sent."""
    from pyspark import cloudpickle

    context, tag = session.sparkContext, f"clinveil-{secrets.token_hex(8)}"
    job = context.broadcast(cloudpickle.dumps(Job(function)))
    window: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(workers, initializer=context.addJobTag, initargs=(tag,)) as pool:
        try:
            sent = (pool.submit(_done, session, partial(_work, tag, job), item) for item in items)
            for each in behind(sent, window, ahead):
                yield each.result().get()
        finally:
            for each in window:
                each.cancel()
            with suppress(Exception):
                context.cancelJobsWithTag(tag)
                job.destroy()


def _done(session: Any, work: Callable[..., Any], item: Any) -> Any:
    """The outcome of one item, as one job of one row."""
    from py4j.protocol import Py4JError
    from pyspark import cloudpickle
    from pyspark.errors import PySparkException

    row = pa.table({"item": pa.array([cloudpickle.dumps(item)], pa.binary())})
    try:
        frame = session.createDataFrame(row).mapInArrow(work, "outcome binary")
        outcome = frame.toArrow().column(0)[0].as_buffer()
    except (Py4JError, PySparkException, OSError, EOFError) as error:
        said = str(error)
        raise (foreign() if any(name in said for name in _FOREIGN) else LostWorkers()) from None
    return cloudpickle.loads(outcome)


def _work(name: str, job: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: one row in, one row out."""
    from pyspark import cloudpickle

    for batch in batches:
        if name not in _LOADED:
            _LOADED.clear()
            _LOADED[name] = cloudpickle.loads(job.value)
        outcomes = [_LOADED[name](cloudpickle.loads(row.as_buffer())) for row in batch.column(0)]
        yield pa.record_batch([pa.array(map(cloudpickle.dumps, outcomes), pa.binary())], ["outcome"])


@contextmanager
def _started(workers: int, address: str | None) -> Iterator[Any]:
    """A session for the block, with its Java, which ends with it."""
    from pyspark.find_spark_home import _find_spark_home
    from pyspark.sql import SparkSession

    _refuse_address(address)
    _need_java()
    if address and address.startswith("spark://") and not anybody_at(address.removeprefix("spark://")):
        raise _silent()
    here = address is None or HERE.fullmatch(address) is not None
    with scratch() as folder, _gateway(here=here) as gateway:
        own = {"spark.master": address or f"local[{workers},{TRIES}]", "spark.cores.max": str(workers)}
        own["spark.sql.warehouse.dir"] = str(folder)
        if here:
            own |= ALONE | {"spark.local.dir": str(folder), "spark.pyspark.python": sys.executable}
            own["spark.executor.extraJavaOptions"] = FAST
            own["spark.authenticate.secret"] = secrets.token_hex(32)
        context = _context(QUIET | own, gateway, here=here)
        session, logs = SparkSession(context), Path(_find_spark_home()) / "work" / context.applicationId
        try:
            yield session
        finally:
            with suppress(Exception):
                session.stop()
            if address and address.startswith("local-cluster"):  # which keeps them beside Spark itself
                remove(logs)


def _context(told: dict[str, str], gateway: Any, *, here: bool) -> Any:
    """A Spark context that has its executors. Raises InputError: no such Spark, or it gives none."""
    from pyspark import SparkConf, SparkContext

    try:
        with own_signals():
            context = SparkContext(conf=SparkConf().setAll(list(told.items())), gateway=gateway)
        context.setLogLevel("OFF")
        if not here:
            _wait(context)
        return context
    except InputError:
        context.stop()
        raise
    except Exception:  # noqa: BLE001  Java's own text is long, and may name anything
        if SparkContext._active_spark_context is not None:
            with suppress(Exception):
                SparkContext._active_spark_context.stop()
        raise _silent() from None


@contextmanager
def _gateway(*, here: bool) -> Iterator[Any]:
    """A Java for the block, whose own words are not shown; one that this process has already stays."""
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
            gateway = launch_gateway(SparkConf(loadDefaults=False).set("spark.driver.extraJavaOptions", FAST), nowhere)
    except (PySparkException, OSError):
        raise MissingExtra(f"a Java {JAVA} that starts", "spark", more=DEBIAN) from None
    try:
        yield gateway
    finally:
        with suppress(Exception):
            gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None
        _end(gateway.proc)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Java ends as its input does; it is made to if it does not."""
    with suppress(OSError):
        assert process.stdin is not None
        process.stdin.close()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _need_java() -> None:
    """Raise MissingExtra without a Java that is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    try:
        said = subprocess.run([java or "java", "-version"], capture_output=True, check=True, timeout=60).stderr
    except (OSError, subprocess.SubprocessError):
        raise MissingExtra(f"Java {JAVA}", "spark", more=DEBIAN) from None
    found = _VERSION.search(said)
    if found and int(found[1]) < JAVA:
        raise MissingExtra(f"Java {JAVA} (only {int(found[1])} is there)", "spark", more=DEBIAN)


def _refuse_address(address: str | None) -> None:
    if address is not None and not HERE.fullmatch(address) and not MASTERS.fullmatch(address):
        raise UsageError("no address of a Spark", where="--address", hint="spark://HOST:PORT, yarn or k8s://…")


def _silent() -> InputError:
    hint = "spark://HOST:PORT as the master's page names it, the same Spark here as there, and workers that start"
    return InputError("no Spark answers there, or none that works", where="--address", hint=hint)


def _wait(context: Any) -> None:
    """Until the cluster gives an executor. Raises InputError if it gives none."""
    if context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    until = time.monotonic() + WAITS
    while context._jsc.sc().getExecutorMemoryStatus().size() < 2:  # the driver is one of them
        if time.monotonic() > until:
            hint = "look whether its workers are up, and have free cores and memory"
            raise InputError(f"the cluster gave no executor in {WAITS:.0f} s", where="--address", hint=hint)
        time.sleep(0.2)
