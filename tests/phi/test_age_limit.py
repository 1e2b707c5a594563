"""Ages over 89 are judged in the year of the note, never in a fixed one."""

from __future__ import annotations

from datetime import date

import pytest

from clinveil.corpus import Patient
from clinveil.phi import NoteView
from clinveil.phi.detection.detectors import ages
from clinveil.phi.detection.detectors.known import _Known


@pytest.fixture
def in_2026(monkeypatch):
    class Fixed(date):
        @classmethod
        def today(cls):
            return cls(2026, 11, 28)

    ages.note_year.cache_clear()
    monkeypatch.setattr(ages, "date", Fixed)
    yield
    ages.note_year.cache_clear()


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("Seen on 3/4/2011, last seen May 2, 2010.", 2011),
        ("Seen 2008-05-06; next visit 1/2/2030.", 2008),
        ("Seen 3/4/14. DOB 5/6/2017.", 2014),
        ("Operated in March 1999.", 1999),
        ("DOB: 3/4/1931.", 2026),
        ("Date of birth is\n3/4/1931; born on May 4, 1950.", 2026),
        ("No date at all.", 2026),
        ("Ratio 3/4/2 and version 1.2.2019.4", 2026),
    ],
)
@pytest.mark.usefixtures("in_2026")
def test_the_year_of_a_note(text, year):
    assert ages.note_year(text) == year


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("DOB: 03/04/1936.", "AGE"),
        ("DOB: 03/04/1937.", "DATE"),
        ("DOB: 03/04/1939.", "DATE"),
        ("Seen 5/6/2004. DOB: 03/04/1915.", "DATE"),
        ("Seen 5/6/2004. DOB: 03/04/1914.", "AGE"),
        ("Seen on May 6, 2004. DOB 3/4/14.", "AGE"),
        ("Seen 5/6/2024. DOB 03/04/38.", "DATE"),
        ("Seen 5/6/2024. DOB 03/04/34.", "AGE"),
        ("Seen 5/6/2024. DOB: 1935-03-04.", "DATE"),
        ("Seen 5/6/2024, born March 4, 1930.", "AGE"),
    ],
)
@pytest.mark.usefixtures("in_2026")
def test_the_label_of_a_date_of_birth(finder, text, label):
    assert [span.label for span in finder.find(text, "p")][-1] == label


@pytest.mark.parametrize(
    ("birth", "seen", "label"),
    [(1937, "", "DATE"), (1930, "", "AGE"), (1930, "Seen 5/6/2010. ", "DATE")],
)
@pytest.mark.usefixtures("in_2026")
def test_the_date_of_birth_on_file(birth, seen, label):
    patient = Patient("p1", ("Binta", "Okoye"), birth_date=date(birth, 3, 4))
    note = NoteView(f"{seen}He was born on 4 March {birth}.", "n", patient)
    assert [span.label for span in _Known().find(note)] == [label]
