"""Object stores: their URLs, Arrow's file systems, and errors of stores as our own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from clinveil.core.errors import InputError, UsageError

URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/?]*)(/?[^?]*)(?:\?(.*))?", re.DOTALL)
# Options that a URL may have; any other one may be a secret.
_OPTIONS = frozenset(
    {"endpoint_override", "scheme", "region", "anonymous", "tls_verify", "replication"}
)
_OPTIONS |= {
    f"{service}_storage_{option}"
    for service in ("blob", "dfs")
    for option in ("authority", "scheme")
}
_ARROW = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs"})
ENVIRONMENT = (
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ACCESS_KEY_ID",
)
_TIMEOUT = 10.0
_ATTEMPTS = 3
# Patterns of store errors (Arrow has no types for them) with our message and hint.
_ERRORS = (
    (
        r"NO_SUCH_BUCKET|bucket does not exist|ContainerNotFound",
        "the bucket does not exist",
        "check its name",
    ),
    (
        (
            r"ACCESS_DENIED|Forbidden|status 403|HTTP status"
            r" 40[13]|INVALID_ACCESS_KEY|SIGNATURE|PermissionError|EXPIRED"
        ),
        "the store denied access",
        "check the credentials and permissions of this account",
    ),
    (
        r"NETWORK_CONNECTION|curlCode|[Cc]onnect|[Tt]imed? ?out|resolve host|Broken pipe|SLOW_DOWN",
        "the store cannot be reached",
        "check the URL and the network, or try again later",
    ),
)


@contextmanager
def failing(where: str) -> Iterator[None]:
    """Turn errors of a store in the block into InputError."""
    try:
        yield
    except OSError as error:
        raise failure(error, where) from None
    except ValueError:  # also Arrow's own
        raise UsageError(
            "not a valid URL", where=where, hint="use for example s3://bucket/notes/*.parquet"
        ) from None


def failure(error: BaseException, where: str) -> InputError:
    """Return our error for an error of a store; the original message may quote names in the
    store.
    """
    text = f"{type(error).__name__} {error}"
    for pattern, problem, hint in _ERRORS:
        if re.search(pattern, text):
            return InputError(problem, where=where, hint=hint)
    return InputError("the store could not read it", where=where, hint="check the URL")


def is_failure_of_store(error: BaseException) -> bool:
    """Return whether an error concerns the store, and not a damaged file."""
    return any(re.search(pattern, f"{type(error).__name__} {error}") for pattern, *_ in _ERRORS)


def refuse_url(url: str) -> None:
    """Raise UsageError for a URL with a password or unknown options."""
    match = URL.fullmatch(url)
    if not match:
        raise UsageError("not a valid URL", hint="use for example s3://bucket/notes/*.parquet")
    if ":" in match[2].partition("@")[0] and "@" in match[2]:
        hint = "remove it; set the store's own environment variables, profile or role instead"
        raise UsageError("the URL contains a password", where=f"{match[1]}://…", hint=hint)
    if unknown := _options(match[4] or "").keys() - _OPTIONS:
        problem = f"{len(unknown)} unknown {'options' if len(unknown) > 1 else 'option'} in the URL"
        raise UsageError(
            problem,
            where=f"{match[1]}://…",
            hint=f"supported: {', '.join(sorted(_OPTIONS))}; no secrets",
        )


def _options(query: str) -> dict[str, str]:
    return {
        key: value
        for key, _, value in (option.partition("=") for option in query.split("&") if option)
    }


@cache
def file_system(scheme: str, host: str, query: str, *_: Any) -> Any:
    """Return the Arrow file system of a URL. Raises UsageError for an unsupported scheme."""
    from pyarrow import fs

    options = _options(query)
    if scheme == "s3":
        return _s3(fs, host, options)
    if scheme not in _ARROW:
        raise UsageError(
            f"unsupported URL scheme {scheme}://", hint=f"use one of {', '.join(sorted(_ARROW))}"
        )
    try:
        url = f"{'gs' if scheme == 'gcs' else scheme}://{host}/" + f"?{query}" * bool(query)
        return fs.FileSystem.from_uri(url)[0]
    except (OSError, NotImplementedError) as error:
        if "libjvm" in str(error) or "libhdfs" in str(error):
            hint = "set JAVA_HOME, HADOOP_HOME and CLASSPATH as for Hadoop's tools"
            raise UsageError("hdfs:// needs Java and Hadoop's library", hint=hint) from None
        raise


def _s3(fs: Any, bucket: str, options: Mapping[str, str]) -> Any:
    default = os.environ.get("AWS_ENDPOINT_URL_S3", os.environ.get("AWS_ENDPOINT_URL"))
    address = options.get("endpoint_override") or default
    scheme_of_endpoint, _, host = (address or "").rpartition("://")
    region = (
        options.get("region")
        or os.environ.get("AWS_REGION")
        or os.environ.get("AWS_DEFAULT_REGION")
    )
    if not address and not region:
        region = fs.resolve_s3_region(bucket)
    retry = fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS)
    return fs.S3FileSystem(
        anonymous=options.get("anonymous") == "true",
        region=region,
        endpoint_override=host.rstrip("/") if address else None,
        scheme=(options.get("scheme") or scheme_of_endpoint or "https") if address else None,
        connect_timeout=_TIMEOUT,
        retry_strategy=retry,
    )
