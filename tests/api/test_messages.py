"""Errors in Python name arguments and settings, not flags."""

from __future__ import annotations

import pytest

import clinveil
from clinveil.api.messages import in_words_of_python
from clinveil.core import InputError, UsageError

TEXT = "The patient was well and went home after the visit with no pain in the chest. "


@pytest.mark.parametrize(
    ("line", "python"),
    [
        ("pass --id COLUMN", "pass id COLUMN"),
        ("--reuse and --seed exclude each other", "reuse and seed exclude each other"),
        ("larger --min-patients, or --as synthetic", "larger min_patients, or kind synthetic"),
        (
            "accept it with --set channel.allow_small=true",
            'accept it with settings={"channel.allow_small": True}',
        ),
        ("(--set test_share=0.02)", '(settings={"test_share": 0.02})'),
        ("--set notes.encoding=cp1252, or", 'settings={"notes.encoding": "cp1252"}, or'),
        ("a -- b and well-known words", "a -- b and well-known words"),
    ],
)
def test_flags_become_arguments(line, python):
    assert in_words_of_python(line) == python


def test_the_hint_of_a_release_works_in_python(tmp_path):
    with pytest.raises(InputError) as caught:
        clinveil.release([TEXT] * 9, tmp_path / "out", kind="obfuscated")
    assert 'settings={"channel.allow_small": True}' in str(caught.value)
    assert caught.value.hint in str(caught.value) and "--" not in str(caught.value)


def test_attacks_and_transformers_too(tmp_path):
    with pytest.raises(UsageError) as caught:
        clinveil.compare([TEXT] * 9, tmp_path / "out")
    assert "label" in str(caught.value) and "--" not in str(caught.value)
    with pytest.raises(InputError) as read:
        clinveil.attack.linkage(str(tmp_path / "absent.csv"), str(tmp_path / "absent.csv"))
    assert "--" not in str(read.value)
