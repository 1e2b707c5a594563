"""Ray tasks (extra `[ray]`), on a Ray of this machine unless an address is given.

Plain tasks rather than Ray Data: its data sets begin with blocks that are all known, where a map's items come one by
one from a generator that must not run ahead; an item here is mostly the name of a part, and Ray Data, which keeps the
order only when told to, costs more for each (benchmarks/scale.md has the figures). The function lies once on each
node, in Ray's shared memory; each worker loads it once.
"""

from __future__ import annotations

import os
import re
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from clinveil.core.errors import InputError, LostWorkers, MissingExtra, UsageError
from clinveil.core.files import owner_only
from clinveil.scale.executor import executors
from clinveil.scale.executors._job import NOWHERE, TRIES, Job, Outcome, foreign
from clinveil.scale.executors._surroundings import anybody_at, environment, hushed, own_signals, scratch
from clinveil.scale.local import Map, behind

TOKEN = secrets.token_hex(32)  # who does not know it cannot speak to our Ray
ALWAYS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_USAGE_STATS_PROMPT_ENABLED": "0"}
# On Linux Ray would listen at all addresses of the machine; this switch, named for others, keeps it to loopback.
ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
# It asks clouds' metadata services who they are, whatever one tells it; a dead proxy keeps that here.
UNASKED = {"http_proxy": NOWHERE, "HTTP_PROXY": NOWHERE, "no_proxy": "127.0.0.1,localhost"}
# No note text in spill files.
LIMITS = {"automatic_object_spilling_enabled": False, "task_oom_retries": TRIES - 1}
VERSION = re.compile(r"Ray: *([\w.]+)\s+Python: *([\w.]+)")
_LOADED: dict[Any, Job] = {}  # in a worker: the job of the last map


@executors.register("ray")
@contextmanager
def ray(workers: int, address: str | None, ahead: int | None) -> Iterator[Map]:
    """A map over Ray tasks; a Ray that this process uses already is used, and left as it is.

    Raises:
        MissingExtra: Ray is not installed. InputError: no Ray answers at the address, or it is of another version.
        UsageError: an address, where this process uses a Ray already.
    """
    with environment(ALWAYS), ExitStack() as stack:
        ray = _imported(alone=address is None)
        if not ray.is_initialized():
            stack.enter_context(_local(ray, workers) if address is None else _joined(ray, address))
        elif address is not None:
            raise UsageError("a Ray is in use in this process", where="--address", hint="leave --address out")
        yield partial(_spread, ray, ahead or 2 * workers)


def _spread(ray: Any, ahead: int, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    """The results in order. Raises LostWorkers; InputError where a worker cannot load what it is sent."""
    window: deque[Any] = deque()
    try:
        job = ray.put(Job(function))
        task = ray.remote(max_retries=TRIES - 1)(_work)
        for sent in behind((task.remote([job], item) for item in items), window, ahead):
            window.appendleft(sent)  # it is cancelled too
            outcome = ray.get(sent)
            window.popleft()
            yield outcome.get()
    except ray.exceptions.RayTaskError:
        raise foreign() from None
    except ray.exceptions.RayError:
        raise LostWorkers from None
    finally:
        for sent in window:
            with suppress(Exception):
                ray.cancel(sent, force=True)


def _work(jobs: list[Any], item: Any) -> Outcome:
    """In a worker: the job is in a list, so that Ray does not load it for each item."""
    import ray

    (name,) = jobs
    if name not in _LOADED:
        _LOADED.clear()
        _LOADED[name] = ray.get(name)
    return _LOADED[name](item)


def _imported(*, alone: bool) -> Any:
    """Ray, which reads some of its environment as it is imported."""
    with environment(ALONE if alone else {}):
        try:
            import ray
        except ImportError:
            raise MissingExtra("ray", "ray") from None
        return ray


@contextmanager
def _local(ray: Any, workers: int) -> Iterator[None]:
    """A Ray of this machine for the block: loopback only, with a token of its own, in a private folder."""
    from ray._private import ray_constants

    token = {} if "RAY_AUTH_MODE" in os.environ else {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
    alone = _changed(ray_constants, "ENABLE_RAY_CLUSTER", False)  # where Ray was imported before
    with alone, environment(ALONE | token), scratch() as folder:
        _reread_authentication()
        with environment(UNASKED):
            place = str(folder / "ray")  # Ray opens to all whatever folder it is given
            _start(ray, address="local", num_cpus=workers, _system_config=LIMITS, _temp_dir=place)
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _joined(ray: Any, address: str) -> Iterator[None]:
    """Somebody's cluster for the block."""
    if address != "auto" and not anybody_at(address.removeprefix("ray://")):
        raise _refused("")
    from ray._private import ray_constants

    try:
        with _changed(ray_constants, "NUM_REDIS_GET_RETRIES", 1), hushed():  # each takes 40 s, and complains
            _start(ray, address=address)
    except Exception as error:  # noqa: BLE001  whatever it is: Ray's own text is long, and may name anything
        ray.shutdown()
        raise _refused(str(error)) from None
    try:
        yield
    finally:
        ray.shutdown()


def _start(ray: Any, **how: Any) -> None:
    """`ray.init`, quietly; signals stay ours."""
    if how.get("address") == "local":
        how |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):  # its lines on killed workers, which it takes no switch for
        worker.print_to_stdstream = _nothing
    with own_signals(), owner_only():
        ray.init(log_to_driver=False, logging_level="critical", **how)


def _nothing(*args: Any, **options: Any) -> None:
    pass


@contextmanager
def _changed(module: Any, name: str, value: Any) -> Iterator[None]:
    """A constant of Ray's for the block; nothing where it has no such constant."""
    if not hasattr(module, name):
        yield
        return
    usual = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, usual)


def _refused(said: str) -> InputError:
    """Why a cluster was not joined: another version, or no answer."""
    versions = [f"Ray {ray} under Python {python}" for ray, python in VERSION.findall(said)]
    if len(versions) > 1:
        what = f"the cluster has {versions[0]}, this machine {versions[1]}"
        return InputError(what, where="--address", hint="install the same Ray and Python here as there")
    hint = "HOST:PORT as `ray start --head` names it, with its token where it asks for one"
    return InputError("no Ray answers there", where="--address", hint=hint)


def _reread_authentication() -> None:
    """Let a Ray that was imported before look at its environment again."""
    with suppress(ImportError, AttributeError):  # older ones have no tokens
        from ray._raylet import AuthenticationTokenLoader, Config

        Config.initialize("")
        AuthenticationTokenLoader.instance().reset_cache()
