"""`clinveil validate`: a run, its folder, a stop and going on, marks read back, and what is refused
in one line.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import stat
from collections import defaultdict

import pytest

from clinveil.cli.main import main
from clinveil.core.finding import read_findings
from clinveil.core.spans import Span
from clinveil.corpus.demo import demo_chunks, write_demo
from clinveil.phi.validation import run as validation


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notes")
    write_demo(folder / "demo", 8, 5)
    return folder / "demo"


@pytest.fixture(scope="module")
def done(demo, tmp_path_factory):
    out = tmp_path_factory.mktemp("validated") / "out"
    assert validate(demo, out, "--patients", str(demo / "patients.parquet")) == 0
    return out


def validate(demo, out, *more):
    return main(
        [
            "validate",
            str(demo / "notes.parquet"),
            "-o",
            str(out),
            "--set",
            "locations=60",
            "-q",
            "--workers",
            "1",
            *more,
        ]
    )


def marked(done, path, change=lambda row: "not", drop=()):
    rows = list(csv.DictReader((done / "locations.csv").open()))
    with path.open("w") as file:
        writer = csv.DictWriter(file, [name for name in rows[0] if name not in drop])
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {k: v for k, v in {**row, "mark": change(row)}.items() if k not in drop}
            )
    return path


def test_the_folder_is_private_and_whole(done):
    assert stat.S_IMODE(done.stat().st_mode) == 0o700
    files = [path for path in done.rglob("*") if path.is_file()]
    assert {"locations.csv", "locations.html", "design.json", "findings.json", "report.md"} <= {
        path.name for path in files
    }
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    rows = list(csv.DictReader((done / "locations.csv").open()))
    assert (
        len(rows) == 60
        and len({row["location"] for row in rows}) == 60
        and len({row["run"] for row in rows}) == 1
    )


def test_the_findings_hold_all_parts_and_no_text(done):
    found = read_findings(done / "findings.json")
    measures = {finding.measure for finding in found}
    assert measures == {f"validate.{m}" for m in ("known_patients", "known_mentions")}
    feeds = {f.detail["setting"]: f.value for f in found if f.measure == "validate.known_patients"}
    assert feeds["with the patient list"] == 0.0 <= feeds["without the patient list"]
    rows = list(csv.DictReader((done / "locations.csv").open()))
    strata = json.loads((done / "design.json").read_text())["locations"]
    names = [
        row["text"] for row in rows if strata[row["location"]] == "found" and len(row["text"]) > 6
    ]
    told = (done / "report.md").read_text() + (done / "findings.json").read_text()
    assert names and not [name for name in names if name in told]


def test_the_page_asks_nothing_of_others_and_holds_every_location(done):
    page = (done / "locations.html").read_text()
    before, data, after = re.split(
        r'(?<=id="data">)(.*?)(?=</script>)', page, maxsplit=1, flags=re.DOTALL
    )
    assert "default-src 'none'" in before and "http" not in before.replace("http-equiv", "") + after
    assert not re.search(r"\b(?:src|href)=", before + after)
    data = json.loads(data)
    assert len(data["locations"]) == 60
    rows = {row["location"]: row for row in csv.DictReader((done / "locations.csv").open())}
    assert data["run"] == rows["1"]["run"]


def test_who_judges_does_not_see_what_was_found(done):
    told = (done / "locations.csv").read_text() + (done / "locations.html").read_text()
    assert "found by the engine" not in told and "not found" not in told
    assert {row["kind"] for row in csv.DictReader((done / "locations.csv").open())} == {
        "place",
        "passage",
    }


def test_marked_with_keys_in_a_browser(done, tmp_path):
    api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or pytest.skip("no browser here")
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_context(accept_downloads=True).new_page()
        asked = []
        wrong = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: wrong.append(error))
        page.goto((done / "locations.html").as_uri())
        for key in "iu" + "n" * 57:
            page.keyboard.press(key)
        page.reload()  # marks are kept
        assert "59 marked" in page.inner_text("#position")
        page.keyboard.press("Enter")
        assert page.inner_text("#position").startswith("60 of 60")
        page.keyboard.press("n")
        with page.expect_download() as download:
            page.keyboard.press("s")
        download.value.save_as(tmp_path / "marks.csv")
        browser.close()
    rows = list(csv.DictReader((tmp_path / "marks.csv").open()))
    assert [row["mark"] for row in rows] == ["identifier", "unsure"] + ["not"] * 58
    assert not wrong and {url.partition(":")[0] for url in asked} <= {"file", "blob"}
    assert main(["validate", str(done), "--marked", str(tmp_path / "marks.csv")]) == 0


def gold_marks(done):
    gold = defaultdict(list)
    for line in next(demo_chunks(8, 5)).spans.splitlines():
        span = json.loads(line)
        gold[span["note_id"]].append(Span(span["start"], span["end"], span["label"]))

    def mark(row):
        here = Span(int(row["start"]), int(row["end"]), "NAME")
        hit = any(here.overlaps(span) for span in gold[row["note_id"]])
        return "identifier" if hit and row["kind"] == "place" else "n"

    return mark


def test_marks_give_recall(done, tmp_path, capsys):
    marks = marked(done, tmp_path / "m.csv", gold_marks(done))
    assert main(["validate", str(done), "--marked", str(marks)]) == 0
    found = {
        f.measure: f for f in read_findings(done / "recall.json") if f.measure != "validate.places"
    }
    recall = found["validate.recall"]
    assert recall.value > 0.9 and recall.low < recall.value <= recall.high and recall.n == 60
    assert found["validate.precision"].value > 0.9
    assert "Recall, from the annotated" in (done / "report.md").read_text()


def test_unsure_widens_both_ways(done, tmp_path):
    sure = gold_marks(done)
    for name, change in {
        "a": sure,
        "b": lambda row: "unsure" if int(row["location"]) % 4 == 0 else sure(row),
    }.items():
        main(["validate", str(done), "--marked", str(marked(done, tmp_path / f"{name}.csv",
            change)),
              "--json", str(tmp_path / f"{name}.json")])  # fmt: skip
    a, b = (read_findings(tmp_path / f"{name}.json")[0] for name in "ab")
    assert (
        b.detail["unsure"] >= 12 and b.low < a.low and b.value < a.value and b.high >= a.high - 1e-3
    )


BAD = {
    "another run": (lambda row: "n", {"run": "0123"}, 3, "row 2 belongs to another run"),
    "no mark": (lambda row: "", {}, 3, "no marks"),
    "unknown mark": (lambda row: "perhaps", {}, 3, "row 2: invalid mark"),
    "several of one": (lambda row: "3", {}, 3, ": invalid mark"),
    "one stratum only": (
        lambda row: "n" if row["location"] == "1" else "",
        {},
        3,
        "no marks in stratum",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_marks_are_one_line(case, done, tmp_path, capsys):
    change, other, code, says = BAD[case]
    path = marked(done, tmp_path / "m.csv", change)
    if other:
        path.write_text(
            path.read_text().replace(
                json.loads((done / "design.json").read_text())["run"], other["run"]
            )
        )
    assert main(["validate", str(done), "--marked", str(path)]) == code
    said = capsys.readouterr().err.strip()
    assert says in said and len(said.splitlines()) == 1


def test_a_location_twice_or_unknown_and_a_file_without_columns(done, tmp_path, capsys):
    path = marked(done, tmp_path / "m.csv", lambda row: "n")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(
        "run,location,mark\n"
        + "".join(",".join([*line.split(",")[:2], "n\n"]) for line in lines[1:2] * 2)
    )
    assert main(["validate", str(done), "--marked", str(path)]) == 3
    assert "duplicate location" in capsys.readouterr().err
    path.write_text(path.read_text().splitlines()[0] + "\n" + lines[1].split(",")[0] + ",9999,n\n")
    assert main(["validate", str(done), "--marked", str(path)]) == 3
    assert "unknown location" in capsys.readouterr().err
    path.write_text("a,b\n1,2\n")
    assert main(["validate", str(done), "--marked", str(path)]) == 3
    assert "missing columns" in capsys.readouterr().err


def test_the_page_s_own_marks_are_taken(done, tmp_path):
    design = json.loads((done / "design.json").read_text())
    sure = gold_marks(done)
    rows = {row["location"]: row for row in csv.DictReader((done / "locations.csv").open())}
    path = tmp_path / "marks.csv"
    path.write_text(
        "run;location;mark\n"
        + "".join(f"{design['run']};{location};{sure(rows[location])}\n" for location in rows)
    )
    assert main(["validate", str(done), "--marked", str(path)]) == 0


def test_changed_notes_are_refused(done, demo, tmp_path, capsys):
    other = tmp_path / "notes.parquet"
    other.write_bytes((demo / "notes.parquet").read_bytes())
    path = str(marked(done, tmp_path / "m.csv", gold_marks(done)))
    assert main(["validate", str(other), "-o", str(done), "--marked", path]) == 0
    write_demo(tmp_path / "more", 3, 6)
    assert (
        main(
            [
                "validate",
                str(tmp_path / "more" / "notes.parquet"),
                "-o",
                str(done),
                "--marked",
                path,
            ]
        )
        == 3
    )
    assert "not the notes of this run" in capsys.readouterr().err


def test_a_finished_run_a_wrong_folder_and_a_missing_place(done, demo, tmp_path, capsys):
    assert validate(demo, done) == 2
    assert "finished run" in capsys.readouterr().err
    assert main(["validate", str(demo / "notes.parquet")]) == 2
    assert main(["validate", str(tmp_path), "--marked", str(done / "locations.csv")]) == 3


def test_a_stopped_run_goes_on_and_comes_out_the_same(demo, done, tmp_path, monkeypatch):
    feed = ("--patients", str(demo / "patients.parquet"))

    def stop(*_):
        raise KeyboardInterrupt

    out = tmp_path / "out"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(validation, "_known", stop)
        validation.validate_notes(demo / "notes.parquet", out, settings(demo), say=lambda _: None)
    assert (out / "stages" / "locations.json").exists() and not (
        out / "stages" / "known.json"
    ).exists()
    kept = (out / "locations.csv").stat().st_mtime_ns
    assert validate(demo, out, *feed) == 0
    assert (out / "locations.csv").stat().st_mtime_ns == kept
    for name in ("findings.json", "locations.csv", "design.json"):
        assert (out / name).read_bytes() == (done / name).read_bytes()


def settings(demo):
    from clinveil.phi.settings import ValidateSettings

    return ValidateSettings.model_validate(
        {"patients": demo / "patients.parquet", "locations": 60} | {"workers": 1}
    )
