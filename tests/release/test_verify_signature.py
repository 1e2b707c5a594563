"""Every change of a signed release is found by `verify --public-key`."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from functools import partial

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from signed_release import SIGNER, signed_release

from clinveil.cli import main
from clinveil.core import InputError, Key, SigningKey
from clinveil.releases import verify
from clinveil.releases.manifest import released_files, sealed, write_sums

FILES = (
    "README.md",
    "report.html",
    "manifest.json",
    "manifest.sig",
    "signing-key.pem",
    "SHA256SUMS",
)
FILES += ("notes/part-1.csv", "notes/part-2.csv")
NEW = ("x", ".x", "d/SHA256SUMS", "notes/SHA256SUMS", "notes/part-3.csv")
OTHER = Key(bytes(32))


def flip(folder, name):
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)


def grow(folder, name):
    with (folder / name).open("ab") as file:
        file.write(b"\n")


def removed(folder, name):
    (folder / name).unlink()


def linked(folder, name):
    shutil.move(folder / name, folder.parent / "moved")
    (folder / name).symlink_to(folder.parent / "moved")


def added(folder, name, text="note text"):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def piped(folder, name):
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)


def bound(folder):
    here = os.getcwd()
    os.chdir(folder)  # the name of a socket is limited to about 100 bytes
    try:
        socket.socket(socket.AF_UNIX).bind("s")
    finally:
        os.chdir(here)


def summed(folder, change):
    change(folder)
    write_sums(folder)


def doubled(folder):
    first = (folder / "SHA256SUMS").read_text().splitlines()[0]
    grow_by(folder / "SHA256SUMS", f"{first}\n")


def grow_by(path, text):
    path.write_text(path.read_text() + text)


def rewritten(folder, change, *, key=None):
    """Change the manifest, and hash, sum and, with a key, sign it again."""
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    text = sealed(manifest)
    (folder / "manifest.json").write_text(text)
    if key is not None:
        (folder / "manifest.sig").write_bytes(SigningKey.derived(key).sign(text.encode()))
        (folder / "signing-key.pem").write_bytes(SigningKey.derived(key).public_pem)
    write_sums(folder)


def forged(folder, *, key=None):
    (folder / "notes" / "part-1.csv").write_text('"note_id","text"\n"1","forged text"\n')
    named = {name for name in json.loads((folder / "manifest.json").read_text())["files"]}

    def change(manifest):
        manifest["files"] = {n: d for n, d in released_files(folder).items() if n in named}
        if key is not None:
            manifest["signing_key"] = SigningKey.derived(key).fingerprint

    rewritten(folder, change, key=key)


def downgraded(folder):
    """A release whose signature was removed."""
    for name in ("manifest.sig", "signing-key.pem"):
        (folder / name).unlink()
    rewritten(folder, lambda manifest: manifest.pop("signing_key"))


CHANGES = {
    **{
        f"{change.__name__} {name}": partial(change, name=name)
        for change in (flip, removed, linked)
        for name in FILES
    },
    **{f"grow {name}": partial(grow, name=name) for name in FILES},
    **{
        f"piped {name}": partial(piped, name=name)
        for name in (
            "notes/part-1.csv",
            "report.html",
            "manifest.sig",
            "manifest.json",
            "SHA256SUMS",
            "p",
        )
    },
    **{
        f"added {n}": partial(added, name=n)
        for n in ("x", ".x", "d/SHA256SUMS", "notes/SHA256SUMS", "notes/part-3.csv")
    },
    "folder": lambda folder: (folder / "empty").mkdir(),
    "folder below": lambda folder: (folder / "notes" / "empty").mkdir(),
    "link to a folder": lambda folder: (folder / "d").symlink_to(folder.parent),
    "broken link": lambda folder: (folder / "d").symlink_to("nowhere"),
    "socket": bound,
    "line doubled": doubled,
    "added and summed": partial(summed, change=partial(added, name="x")),
    "removed and summed": partial(summed, change=partial(removed, name="notes/part-2.csv")),
    "report changed and summed": partial(summed, change=partial(grow, name="report.html")),
    "forged": forged,
    "forged and signed by another key": partial(forged, key=OTHER),
    "no files": partial(rewritten, change=lambda m: m.update(files={}), key=None),
    "gates changed": partial(rewritten, change=lambda m: m["gates"].append(m["gates"][0])),
    "without signature": downgraded,
    "signed by another key": partial(rewritten, change=lambda m: None, key=OTHER),
}


@pytest.fixture()
def out(tmp_path):
    signed_release(tmp_path / "out" / "release", vault=tmp_path / "out" / "vault")
    return tmp_path / "out"


def test_there_are_fifty_changes():
    assert len(CHANGES) >= 50


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found(out, change):
    CHANGES[change](out / "release")
    assert not all(check.passed for check in verify(out / "release", SIGNER.fingerprint))


@pytest.mark.parametrize("given", ["fingerprint", "file"])
def test_an_unchanged_release_agrees(out, given, tmp_path, capsys):
    (tmp_path / "key.pem").write_bytes(SIGNER.public_pem)
    key = SIGNER.fingerprint if given == "fingerprint" else str(tmp_path / "key.pem")
    assert main(["verify", str(out / "release"), "--public-key", key]) == 0
    assert f"signature of the given key (signed by {SIGNER.fingerprint})" in capsys.readouterr().out
    assert main(["verify", str(out / "release")]) == 0
    assert "not checked whose key this is" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", [None, "", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "rsa"]
)
def test_a_key_that_is_none_is_one_line(out, tmp_path, text, capsys):
    path = tmp_path / "key.pem"
    if text == "rsa":
        public = rsa.generate_private_key(65537, 2048).public_key()
        path.write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    elif text is not None:
        path.write_text(text)
    assert main(["verify", str(out / "release"), "--public-key", str(path)]) == 3
    problem = "there is no such file" if text is None else "is not an Ed25519 public key"
    assert problem in capsys.readouterr().err
    with pytest.raises(InputError, match="not an unencrypted Ed25519 private key"):
        SigningKey.load(path)


def test_the_key_of_the_release_itself_proves_nothing(out, capsys, monkeypatch):
    monkeypatch.chdir(out / "release")
    for key in (str(out / "release" / "signing-key.pem"), "signing-key.pem"):
        assert main(["verify", str(out / "release"), "--public-key", key]) == 3
        assert "--public-key: is a file of the release itself" in capsys.readouterr().err


def test_a_part_of_a_fingerprint_is_refused(out, capsys):
    assert main(["verify", str(out / "release"), "--public-key", SIGNER.fingerprint[:20]]) == 3
    assert "not a complete fingerprint" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_reads_key_and_signature(out, tmp_path):
    release = out / "release"
    how = [
        "openssl",
        "pkeyutl",
        "-verify",
        "-pubin",
        "-inkey",
        release / "signing-key.pem",
        "-rawin",
    ]
    how += ["-in", release / "manifest.json", "-sigfile", release / "manifest.sig"]
    assert subprocess.run(how, capture_output=True).returncode == 0
    flip(release, "manifest.json")
    assert subprocess.run(how, capture_output=True).returncode != 0
    subprocess.run(
        ["openssl", "genpkey", "-algorithm", "ed25519", "-out", tmp_path / "k"], check=True
    )
    assert SigningKey.load(tmp_path / "k").fingerprint.startswith("SHA256:")


def test_an_audit_log_does_not_replace_the_checks(out):
    (out / "release" / "audit-0001.jsonl").write_text("")
    assert main(["verify", str(out / "release")]) == 4
    assert main(["verify", str(out / "release"), "--public-key", SIGNER.fingerprint]) == 4


def test_text_around_the_public_key_is_found(out):
    key = out / "release" / "signing-key.pem"
    key.write_text("Dear recipient,\n" + key.read_text())
    write_sums(out / "release")
    assert not all(check.passed for check in verify(out / "release", SIGNER.fingerprint))
