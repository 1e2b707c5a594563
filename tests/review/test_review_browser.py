"""The page in a real browser (Debian's Chromium): the keyboard alone, odd Unicode, a killed server,
a small window.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from review_cases import TEXTS, decision_lines, deidentify, served, serving, write_notes

from clinveil.cli import main
from clinveil.corpus import write_demo
from clinveil.phi import open_desk as desk_of
from clinveil.phi import review_of, review_queue
from clinveil.phi.validation.marks import UNSURE, read_marks
from clinveil.phi.validation.queue import read_design

CHROMIUM = shutil.which("chromium")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed (apt-get install chromium)"
)
SHOTS = os.environ.get("CLINVEIL_SHOTS")  # a folder for the screenshots of the recorded run

EDITING = "j k w W s ArrowDown ArrowUp ArrowRight ArrowLeft . > , < ] } [ { Escape"
DECIDING = "a x u r A l Escape s l Escape s 9 u ? Escape / Escape Control+z n p 0 u"


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Reviewer:
    """Who sits at the keyboard. Everything the browser asked for or complained of is kept."""

    def __init__(self, browser, address, width=1400, height=850):
        self.page = browser.new_page(viewport={"width": width, "height": height})
        self.asked = []
        self.said = []
        self.keys = 0
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(address)
        self.wait("#counts", " done")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
            self.keys += 1
        self.page.locator("main[aria-busy=false]").wait_for()

    def wait(self, selector, text):
        sync_api.expect(self.page.locator(selector)).to_contain_text(text, timeout=30_000)

    def text(self, selector):
        return self.page.text_content(selector)

    def shot(self, name):
        if SHOTS:
            self.page.screenshot(path=Path(SHOTS) / f"{name}.png")


def note(figure):
    if SHOTS:
        with (Path(SHOTS) / "figures.txt").open("a") as file:
            file.write(f"{figure}\n")


def hundred():
    """Notes of two to four spans; in every fourth a name that no detector knows."""
    for n in range(100):
        day = f"{n % 12 + 1}/{n % 28 + 1}/2019"
        text = (
            f"Dr. Smith saw Mary Okwuosa on {day}.\nShe had {n} days of pain; call"
            f" 617-555-{1000 + n}.\n"
        )
        yield (
            f"note-{n:03}",
            text + ("Zylphara came along 😀 too.\n" if n % 4 == 0 else "No more complaints.\n"),
        )


@pytest.mark.slow
def test_a_hundred_notes_by_keyboard_alone_and_nothing_is_lost_when_the_server_is_killed(
    tmp_path, monkeypatch, browser
):
    monkeypatch.chdir(tmp_path)
    texts = dict(hundred())
    assert (
        deidentify(write_notes(tmp_path / "notes.parquet", texts), "-o", "out.parquet", "--spans")
        == 0
    )
    started = time.perf_counter()
    keys = done = 0
    for stop in (50, 100):  # killed after the first half, in the middle of a note
        with served(tmp_path, stderr=subprocess.DEVNULL) as (process, address):
            reviewer = Reviewer(browser, address)
            assert f"{done} of 100 notes done" in reviewer.text("#counts")
            if stop == 100:
                assert "✗" in reviewer.text("#spans")  # the half-done note is as it was left
                reviewer.press("u")
            while done < stop:
                review_one(reviewer, done)
                done += 1
                reviewer.wait("#counts", f"{done} of 100 notes done")
            keys += reviewer.keys
            if stop == 50:
                reviewer.shot("half")
                reviewer.press("r")
                process.send_signal(signal.SIGKILL)
                process.wait()
                reviewer.page.keyboard.press("a")
                reviewer.wait("#trouble", "The server does not respond")
                assert reviewer.text("#saved") == "not saved"
                reviewer.shot("killed")
            reviewer.page.close()
    seconds = time.perf_counter() - started
    note(
        f"100 notes by keyboard: {seconds / 100:.2f} s and {keys / 100:.1f} keys a note, with two"
        " starts"
    )
    check_file(tmp_path, texts)


def review_one(reviewer, n):
    """Accept what was found; in every fifth note reject the first; in every fourth add the name
    that was missed.
    """
    spans = reviewer.page.locator("#spans > li").count()
    reviewer.press(*("r" if i == 0 and n % 5 == 0 else "a" for i in range(spans)))
    if n % 4 == 0:
        reviewer.press("w", "1")
    if n == 8:
        reviewer.shot("note")
    reviewer.press("Enter")


def check_file(folder, texts):
    from clinveil.phi import read_file

    notes = read_file(folder / "out.parquet.vault" / "review" / "first.jsonl").notes
    assert len(notes) == 100 and all(note.done for note in notes.values())
    for n, (note_id, text) in enumerate(texts.items()):
        verdicts = notes[note_id].verdicts
        kept = [text[v.start : v.end] for v in verdicts.values() if v]
        assert [p for p, v in verdicts.items() if v is None] == ([(4, 9)] if n % 5 == 0 else [])
        assert ("Zylphara" in kept) == (n % 4 == 0)
        assert {"Mary Okwuosa", f"617-555-{1000 + n}"} <= set(kept)
    assert (
        deidentify(
            "notes.parquet",
            "-o",
            "new.parquet",
            "--set",
            "identifiers.mode=tag",
            "--reviewed",
            folder / "out.parquet.vault",
        )
        == 0
    )
    import pyarrow.parquet as pq

    assert (
        pq.read_table("new.parquet")["text"][0].as_py().startswith("Dr. Smith saw [NAME] on [DATE]")
    )


def test_places_are_code_points_whatever_stands_before_them(made, open_desk, browser):
    with open_desk() as desk, serving(desk) as server:
        reviewer = Reviewer(browser, server.address)
        reviewer.press("n")
        reviewer.wait("#note-head", "emoji")
        assert reviewer.text("#current-text b") == "Mary Okwuosa"
        reviewer.press("s", "Escape", "/")
        reviewer.page.keyboard.type("«fine»")
        reviewer.press("Enter")
        reviewer.wait("#hits", "1 of 1")
        reviewer.press("Escape", "{", "}", "4")
        reviewer.wait("#current-text", "CITY")
        text = TEXTS["emoji"]
        last = decision_lines(made)[-1]["set"][0]
        assert text[slice(*last["place"])] == text[slice(*last["span"][:2])] == "fine"
        # A family of code points that is one to the eye is passed as one.
        reviewer.press("k", "]", "]")
        last = decision_lines(made)[-1]["set"][0]["span"]
        assert text[slice(*last[:2])] == "Mary Okwuosa 👩‍⚕️"
        assert reviewer.text(".treated .new") != "Mary Okwuosa"
        assert reviewer.page.locator(".invisible").get_attribute("title") == "U+200B"
        reviewer.press("n")
        reviewer.wait("#note-head", "rtl")
        reviewer.press("/")
        reviewer.page.keyboard.type("GARCI\u0301A")
        reviewer.press("Enter")
        reviewer.wait("#hits", "1 of 1")
        reviewer.press("Escape", "}", "l")
        reviewer.page.keyboard.type("licence")
        reviewer.press("Enter")
        reviewer.wait("#current-text", "LICENSE")
        last = decision_lines(made)[-1]["set"][0]["span"]
        assert TEXTS["rtl"][slice(*last[:2])] == "Garci\u0301" and last[2] == "LICENSE"
        reviewer.shot("rtl")
        assert reviewer.said == []
        reviewer.page.close()


def test_the_mouse_marks_too_and_borders_labels_and_undo_work(open_desk, browser):
    with open_desk() as desk, serving(desk) as server:
        reviewer = Reviewer(browser, server.address)
        page = reviewer.page
        page.locator(".written", has_text="catheter").dblclick(position={"x": 80, "y": 12})
        reviewer.press("3")
        reviewer.wait("#current-text", "HOSPITAL")
        assert page.locator("mark[aria-current]").text_content() == "catheter"
        reviewer.press("<")  # nothing is left of it
        assert page.locator("mark[aria-current]").text_content() == "catheter"
        reviewer.press(",")
        assert page.locator("mark[aria-current]").text_content() == "Foley catheter"
        assert "‸" not in reviewer.text(".treated") and page.locator("ins.new").count() == 4
        reviewer.press("u", "u")
        assert page.locator("mark[data-key]").count() == 3 and page.locator("#undo").is_disabled()
        page.get_by_role("button", name="Accept all").click()
        reviewer.wait("#note-status", "0 open")
        page.get_by_role("combobox", name="Label").select_option("DATE")
        assert reviewer.text("#spans-head") == "Detected spans (1 of 3)"
        reviewer.press("?")
        assert page.get_by_role("dialog").is_visible()
        page.get_by_role("checkbox").uncheck()
        reviewer.press("Escape", "r")
        assert "0 open" in reviewer.text("#note-status") and "✗" not in reviewer.text("#spans")
        page.get_by_role("button", name="Stop").click()
        reviewer.wait("#trouble", "All decisions are saved")
        page.close()


def test_every_key_and_button_works_where_there_is_much_or_nothing_to_do(open_desk, browser):
    with open_desk() as desk, serving(desk) as server:
        reviewer = Reviewer(browser, server.address)
        page = reviewer.page
        for note in ("plain", "empty"):
            page.get_by_role("button", name=f"Note {note},").click()
            reviewer.wait("#note-head", note)
            for key in EDITING.split():
                reviewer.press(key)
            for key in DECIDING.split():
                reviewer.press(key)
            for button in page.locator("[data-do]").all():
                if button.is_enabled():
                    button.click()
                    reviewer.press("Escape")
            page.get_by_role("combobox", name="Sorted by").select_option("score")
        assert reviewer.said == [] and page.locator("#trouble").is_hidden()
        page.close()


def test_the_page_asks_nobody_else_lives_through_a_reload_and_opens_once(open_desk, browser):
    with open_desk() as desk, serving(desk) as server:
        reviewer = Reviewer(browser, server.address)
        assert "#" not in reviewer.page.url
        reviewer.page.reload()
        reviewer.wait("#note-head", "plain")
        origin = server.address.partition("/#")[0]
        assert len(reviewer.asked) > 10 and all(
            url.startswith(f"{origin}/") for url in reviewer.asked
        )
        assert reviewer.said == []
        other = browser.new_context().new_page()
        other.goto(server.address)
        sync_api.expect(other.locator("#trouble")).to_contain_text("was already used")
        assert not other.locator("mark").count()
        assert (
            other.evaluate("fetch('https://example.org/').then(() => 'out', () => 'kept')")
            == "kept"
        )
        other.close()
        reviewer.page.close()


def test_a_window_at_twice_the_size_shows_everything_and_every_button_has_a_name(
    open_desk, browser
):
    with open_desk() as desk, serving(desk) as server:
        reviewer = Reviewer(browser, server.address, width=640, height=425)  # 1280 by 850 at 200 %
        page = reviewer.page
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 640
        names = page.evaluate(
            "[...document.querySelectorAll('button')].map(b => b.ariaLabel || b.textContent.trim())"
        )
        assert len(names) > 20 and all(names)
        page.emulate_media(forced_colors="active", color_scheme="dark")
        reviewer.shot("high-contrast")
        page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.close()


def test_a_sample_is_judged_blind_by_keyboard_and_gives_recall(tmp_path, monkeypatch, browser):
    monkeypatch.chdir(tmp_path)
    write_demo(tmp_path / "demo", 3, 5)
    sample = ["--set", "locations=40", "--set", "quiet=true", "--workers", "1"]
    assert main(["validate", "demo/notes.parquet", "-o", "validated", *sample]) == 0
    places = passages = 0
    run = review_of(Path("validated"))
    entries = review_queue(run.entries(), 100, "given")
    with desk_of(run, entries, "first") as desk, serving(desk) as server:
        reviewer = Reviewer(browser, server.address)
        assert reviewer.text("#notes-head") == "Locations"
        while not reviewer.text("#counts").startswith("40 of 40"):
            if "marked" in reviewer.text("#question"):
                assert "Unsure" in reviewer.text("#done-text")
                reviewer.press(("a", "r", "Enter")[places % 3])
                places += 1
            else:
                reviewer.press(*(["w", "Enter"] if passages == 0 else []), "Enter")
                passages += 1
            if places + passages == 6:
                reviewer.shot("sample")
                reviewer.page.reload()
                reviewer.wait("#counts", "6 of 40 locations done")
        shown = reviewer.page.content().casefold()  # texts, titles and labels
        assert not [word for word in ("score 1", "score 0", "tagger", "names:") if word in shown]
        assert reviewer.said == []
        reviewer.page.close()
    marks = read_marks(tmp_path / "validated/review/first.jsonl", read_design(Path("validated")))
    counts = Counter(marks.counts.values())
    assert len({*marks.counts, *marks.planted}) == 40 and passages > 1
    assert counts[UNSURE] == places // 3 and counts[1] == (places + 2) // 3 + 1
    assert main(["validate", "validated", "--marked", "validated/review/first.jsonl"]) == 0


@pytest.mark.slow
def test_a_note_of_a_megabyte_opens_and_takes_steps_without_a_wait_that_anybody_minds(
    tmp_path, monkeypatch, browser
):
    monkeypatch.chdir(tmp_path)
    block = (
        "Dr. Smith saw Mary Okwuosa on 3/4/2019 😀.\n"
        + "The knee hurts less, and the patient walks well.\n" * 20
    )
    texts = {"large": block * (1_000_000 // len(block.encode()) + 1)}
    assert (
        deidentify(write_notes(tmp_path / "notes.parquet", texts), "-o", "out.parquet", "--spans")
        == 0
    )
    with served(tmp_path, stderr=subprocess.DEVNULL) as (_, address):
        began = time.perf_counter()
        reviewer = Reviewer(browser, address)
        reviewer.page.locator("mark[aria-current]").wait_for()
        opened = time.perf_counter() - began
        began = time.perf_counter()
        spans = int(reviewer.text("#note-status").split()[0])
        for _ in range(5):
            reviewer.press("a")
        assert f"{spans - 5} open" in reviewer.text("#note-status")
        step = (time.perf_counter() - began) / 5
        reviewer.shot("large")
        reviewer.page.close()
    note(f"1 MB with {spans} spans: opened in {opened:.1f} s, {step:.2f} s a step")
    assert len(decision_lines(tmp_path)) == 6 and opened < 30 and step < 5
