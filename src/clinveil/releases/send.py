"""A release sent to a store of objects: only what passed all gates, whole, and never the vault."""

from __future__ import annotations

from pathlib import Path

from clinveil.core.errors import InputError, UsageError
from clinveil.core.remote import RemotePath
from clinveil.core.upload import ready, send
from clinveil.releases.manifest import verify

COMMAND = "publish"


def check_target(to: Path, *, force: bool) -> RemotePath:
    """The place that a release is to go to. Raises UsageError for one of this machine, or one that is taken."""
    if not isinstance(to, RemotePath):
        raise UsageError("is a place of this machine", where=to.name, hint="name a URL, such as s3://bucket/release")
    ready(to, command=COMMAND, force=force)
    return to


def publish_release(out: Path, to: RemotePath, *, force: bool = False) -> None:
    """Send `OUT/release` of a finished run, if it is as it was sealed.

    Raises:
        InputError: there is no release, or it does not verify. UsageError: the place is taken.
        DiskError: the store cannot be written to; a next try goes on.
    """
    release = out / "release"
    if not release.is_dir():
        raise InputError("holds no release", where=out.name, hint="name the OUT of a run that passed all gates")
    if failed := [check for check in verify(release) if not check.passed]:
        what = f"its release does not verify, {len(failed)} of the checks failed"
        raise InputError(what, where=out.name, hint="clinveil verify OUT/release says which; nothing was sent")
    send(release, to, command=COMMAND, force=force)
