"""The Ray executor (extra `[ray]`): Ray tasks, on a local Ray unless an address is given.

Plain tasks are used instead of Ray Data: Ray Data needs all blocks at the start, but a map's items
come one by one from a generator. An item is usually just the name of a part, for which Ray Data has
a higher overhead. The function is stored once per node, in Ray's shared memory, and loaded once per
worker.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from clinveil.core import (
    InputError,
    LostWorkers,
    MissingExtra,
    UsageError,
    at_most_cores,
    owner_only,
)
from clinveil.scale.executors._cluster import (
    NOWHERE,
    RemoteCall,
    RemoteOutcome,
    accepts_connections,
    environment,
    foreign,
    hushed,
    outcomes,
    own_signals,
    scratch,
)
from clinveil.scale.local import TRIES, Map

TOKEN = secrets.token_hex(32)  # required to connect to our local Ray
ALWAYS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_USAGE_STATS_PROMPT_ENABLED": "0"}
# On Linux Ray listens on all network addresses; this switch, despite its name, restricts it to
# loopback.
ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
# Ray always queries the metadata services of clouds; an unreachable proxy prevents it.
UNASKED = {"http_proxy": NOWHERE, "HTTP_PROXY": NOWHERE, "no_proxy": "127.0.0.1,localhost"}
# No note text in spill files.
LIMITS = {"automatic_object_spilling_enabled": False, "task_oom_retries": TRIES - 1}
_LOADED: dict[Any, RemoteCall] = {}  # in a worker: the job of the last map


@contextmanager
def open_ray(
    workers: int, address: str | None, tasks: int | None, ahead: int | None
) -> Iterator[Map]:
    """Open a map over Ray tasks; a Ray that this process already uses is used and left unchanged.

    Raises:
        MissingExtra: Ray is not installed. InputError: no Ray answers at the address, or it has
            another version.
        UsageError: an address is given, but this process already uses a Ray.
    """
    with environment(ALWAYS), ExitStack() as stack:
        ray = _imported(alone=address is None)
        if not ray.is_initialized():
            stack.enter_context(
                _local(ray, at_most_cores(workers)) if address is None else _joined(ray, address)
            )
        elif address is not None:
            raise UsageError(
                "this process already uses a Ray", where="executor.address", hint="omit it"
            )
        slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        yield partial(_map, ray, slots, tasks, ahead)


def _map(
    ray: Any,
    slots: int,
    tasks: int | None,
    ahead: int | None,
    function: Callable[[Any], Any],
    items: Iterable[Any],
    /,
) -> Iterator[Any]:
    """Yield the results in order. Raises LostWorkers; InputError if a worker cannot load the
    function or an item.
    """
    try:
        send = partial(
            ray.remote(max_retries=TRIES - 1)(_work).remote, [ray.put(RemoteCall(function))]
        )
        yield from outcomes(
            send,
            items,
            ray.get,
            partial(ray.cancel, force=True),
            slots=slots,
            tasks=tasks,
            ahead=ahead,
        )
    except ray.exceptions.RayTaskError:
        raise foreign() from None
    except ray.exceptions.RayError:
        raise LostWorkers from None


def _work(jobs: list[Any], item: Any) -> RemoteOutcome:
    """Run in a worker; the job is in a list so that Ray does not load it for each item."""
    import ray

    (name,) = jobs
    if name not in _LOADED:
        _LOADED.clear()
        _LOADED[name] = ray.get(name)
    return _LOADED[name](item)


def _imported(*, alone: bool) -> Any:
    """Import Ray with its environment variables set, because it reads some at import."""
    with environment(ALONE if alone else {}):
        try:
            import ray
        except ImportError:
            raise MissingExtra("ray", "ray") from None
        return ray


@contextmanager
def _local(ray: Any, workers: int) -> Iterator[None]:
    """Start a local Ray for the block: loopback only, with a random token, in a private folder."""
    from ray._private import ray_constants

    token = (
        {} if "RAY_AUTH_MODE" in os.environ else {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
    )
    alone = _changed(ray_constants, "ENABLE_RAY_CLUSTER", False)  # in case Ray was imported earlier
    with alone, environment(ALONE | token), scratch() as folder:
        _reread_authentication()
        with environment(UNASKED):
            path = str(folder / "ray")  # Ray makes its own folder accessible to all users
            _start(ray, address="local", num_cpus=workers, _system_config=LIMITS, _temp_dir=path)
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _joined(ray: Any, address: str) -> Iterator[None]:
    """Connect to an existing cluster for the block."""
    if address != "auto" and not accepts_connections(address.removeprefix("ray://")):
        raise _refused()
    from ray._private import ray_constants

    try:
        # Each retry takes 40 s and prints warnings.
        with (
            _changed(ray_constants, "NUM_REDIS_GET_RETRIES", 1),
            hushed(),
        ):
            _start(ray, address=address)
    except Exception:  # noqa: BLE001  Ray's own message is long, and may contain data
        ray.shutdown()
        raise _refused() from None
    try:
        yield
    finally:
        ray.shutdown()


def _start(ray: Any, **options: Any) -> None:
    """Call `ray.init` without output, and keep our signal handlers."""
    if options.get("address") == "local":
        options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    from ray._private import worker

    # Its messages about killed workers, which no option disables.
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *args, **options: None
    with own_signals(), owner_only():
        ray.init(log_to_driver=False, logging_level="critical", **options)


@contextmanager
def _changed(module: Any, name: str, value: Any) -> Iterator[None]:
    """Change a constant of Ray for the block, if it exists."""
    if not hasattr(module, name):
        yield
        return
    original = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, original)


def _refused() -> InputError:
    hint = (
        "use HOST:PORT as printed by `ray start --head`, with its token if required, and the same"
        " Ray and Python"
    )
    return InputError("no Ray answers at this address", where="executor.address", hint=hint)


def _reread_authentication() -> None:
    """Make a previously imported Ray read its environment again."""
    with suppress(ImportError, AttributeError):  # older ones have no tokens
        from ray._raylet import AuthenticationTokenLoader, Config

        Config.initialize("")
        AuthenticationTokenLoader.instance().reset_cache()
