"""The second opinion of the extra `accurate`: its identity in settings, its findings, and its
absence.
"""

from __future__ import annotations

import sys

import pytest

from clinveil.core import MissingExtra, run_hash
from clinveil.phi import Finder, NoteView, PhiSettings, SecondOpinion
from clinveil.phi.detection.second_opinion import PACKAGE, installed
from clinveil.phi.settings import SECOND_OPINION

needs_model = pytest.mark.skipif(
    not installed(), reason=f"needs {PACKAGE} (pip install 'clinveil[accurate]')"
)


def found(finder, text):
    return [(text[span.start : span.end], span.label) for span in finder.find(text, "p")]


@pytest.mark.parametrize("answer", ["on", "off"])
def test_the_environment_variable_decides_where_the_setting_is_automatic(monkeypatch, answer):
    monkeypatch.setenv(SECOND_OPINION, answer)
    assert PhiSettings().second_opinion == answer
    assert PhiSettings(second_opinion="off").second_opinion == "off"


def test_without_the_variable_the_installation_decides(monkeypatch):
    monkeypatch.delenv(SECOND_OPINION)
    assert PhiSettings().second_opinion == ("on" if installed() else "off")


def test_another_value_of_the_variable_is_refused(monkeypatch):
    monkeypatch.setenv(SECOND_OPINION, "maybe")
    with pytest.raises(ValueError, match=SECOND_OPINION):
        PhiSettings()


def test_a_run_with_it_is_another_run_than_one_without_it():
    with_it = PhiSettings(second_opinion="on")
    without = PhiSettings(second_opinion="off")
    assert run_hash(with_it) != run_hash(without)
    assert with_it.record()["second_opinion"] == "on"


@pytest.mark.skipif(installed(), reason="the model is installed")
def test_where_it_is_not_installed_a_run_that_asks_for_it_stops_at_its_start():
    with pytest.raises(MissingExtra, match=PACKAGE) as stop:
        Finder.of(PhiSettings(second_opinion="on"))
    assert "clinveil[accurate]" in str(stop.value.hint)


@pytest.fixture(scope="module")
def both():
    return Finder.of(PhiSettings(second_opinion="on")), Finder.of(PhiSettings(second_opinion="off"))


@needs_model
def test_it_adds_names_and_removes_none(both):
    texts = [
        "Had Zhuifaup been wearing a helmet?",
        "Somehow Brautien pulled out the feeding tube.",
        "Ran the case past Moonuvak.",
        "Sitter with Ollivarn until midnight.",
        "Mr. Okafor was seen by Dr. Lindqvist on 3/4/2019.",
    ]
    counts = [[len(found(finder, text)) for text in texts] for finder in both]
    assert all(more >= fewer for more, fewer in zip(*counts, strict=True))
    assert sum(counts[0]) > sum(counts[1])


@needs_model
def test_clinical_words_are_kept(both):
    text = (
        "Hypertension is stable. Metformin was continued. Cellulitis improved. Foley removed."
        " Lantus at night."
    )
    assert found(both[0], text) == []


@needs_model
def test_names_are_located_in_text_with_other_characters_and_without_ends(both):
    text = (
        "É “Somehow Brautien pulled out” the tube " + "and slept well " * 400 + "then Brautien woke"
    )
    covered = {i for span in both[0].find(text, "p") for i in range(span.start, span.end)}
    assert all(
        covered.issuperset(range(start, start + 8))
        for start in (text.index("Brautien"), text.rindex("Brautien"))
    )


@needs_model
def test_no_code_of_the_package_is_imported(both):
    assert not any(name.startswith("arcjet") for name in sys.modules)


@needs_model
def test_a_note_without_unsettled_words_is_not_read(both):
    assert list(SecondOpinion().find(NoteView("the wound is clean. no fever."), [])) == []
