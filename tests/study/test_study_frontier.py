"""The frontier: end to end on invented notes, taken up again, its halves, its control, and who is on the frontier."""

from __future__ import annotations

import stat

import pytest

from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding
from clinveil.core.settings import load_settings
from clinveil.corpus.demo import write_demo
from clinveil.releases.settings import ReleaseChannelSettings
from clinveil.scale.tasks import Store
from clinveil.study.engine import Results
from clinveil.study.frontier.grid import ALL, CONTROL, OLD, PAPER_7, RELEASE, grid
from clinveil.study.frontier.measures import KEPT, kept, strongest
from clinveil.study.frontier.settings import StudySettings
from clinveil.study.frontier.study import Frontier, run_study
from clinveil.study.frontier.tables import best_of, figures
from clinveil.study.inputs import File, Source

TINY = {"size": "tiny", "label": ("diagnosis_group",), "workers": 1, "seed": 3}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return write_demo(tmp_path_factory.mktemp("demo") / "demo", 50, 1).files


@pytest.fixture(scope="module")
def done(demo, tmp_path_factory):
    out, said = tmp_path_factory.mktemp("study") / "out", []
    return run_study(demo[0], out, load_settings(StudySettings, TINY), patients=demo[1], say=said.append), out, said


def test_every_output_is_there_and_its_owners_only(done):
    results, out, _ = done
    for name in ("tables.md", "findings.json", "study.html", "SECRET.txt", "figures/fig-frontier.svg"):
        assert stat.S_IMODE((out / name).stat().st_mode) == 0o600
    assert [table.ident for table in results.tables] == ["frontier", "utility", "readers", "draw", "linkage"]


def test_the_control_is_read_and_linked_and_keeps_all(done):
    results, *_ = done
    assert results.of("study.strongest", setting=CONTROL, stratum="all").value == pytest.approx(1, abs=0.01)
    linked = results.of("attack.linkage", setting=CONTROL, attacker="without the vectors", against="whole texts")
    assert linked.value >= 0.95
    assert results.of(KEPT, setting=CONTROL, model="lr").value == pytest.approx(1, abs=0.1)


def test_protected_settings_are_read_less_than_the_control(done):
    results, *_ = done
    for name in (OLD, RELEASE, "matched-30-shuffled"):
        assert results.of("study.strongest", setting=name, stratum="all").value < 0.7


def test_settings_are_compared_with_the_old_default_on_the_same_notes(done):
    results, *_ = done
    gain = results.of("study.against", setting=RELEASE, against=OLD, model="lr")
    sides = [results.of(KEPT, setting=name, model="lr") for name in (RELEASE, OLD)]
    whole = results.of("utility.classification", side="original", metric="macro_f1", model="lr").value
    assert gain.value == pytest.approx(whole * (sides[0].value - sides[1].value))
    assert gain.low <= gain.value <= gain.high


def test_the_same_command_again_does_nothing_anew(done, demo):
    first, out, _ = done
    said = []
    again = run_study(demo[0], out, load_settings(StudySettings, TINY), patients=demo[1], say=said.append)
    assert again.findings == first.findings
    assert all("nothing to do" in line for line in said if "tasks" in line)


def test_one_more_setting_reuses_what_is_done(done, demo, tmp_path):
    _, out, _ = done
    settings = load_settings(StudySettings, {**TINY, "setting": (OLD, RELEASE)})
    study = Frontier(settings, Source.of(demo[0], settings.notes, settings.label), File.of(demo[1]))
    assert all(Store(out / "tasks").done(task) for tasks in study.plan.stages.values() for task in tasks)


def test_the_halves_share_no_patient_and_no_draw(demo, tmp_path):
    found, seeds = [], []
    for half in ("choose", "confirm"):
        settings = load_settings(StudySettings, {**TINY, "half": half, "setting": (RELEASE,)})
        study = Frontier(settings, Source.of(demo[0], settings.notes, settings.label))
        store = Store(tmp_path)
        folder = store.folder(study.prepare)
        folder.mkdir(parents=True)
        study.prepare(folder, store)
        found.append({note.patient_id for note in _rows(study.prepare.corpus(store))})
        seeds.append(study.seed)
    assert not found[0] & found[1]
    assert all(found)
    assert seeds[0] != seeds[1]


def _rows(corpus):
    from clinveil.corpus.corpus import rows

    return rows(corpus)


def test_confirming_needs_the_settings_that_were_chosen():
    with pytest.raises(UsageError, match="--setting NAME"):
        load_settings(StudySettings, {**TINY, "half": "confirm"})
    with pytest.raises(UsageError, match="no such setting: nobody"):
        grid("small", ("nobody",))


def test_the_grid_has_the_papers_settings_and_whatever_a_release_takes():
    cells = {cell.name: cell for cell in grid("small")}
    assert list(cells) == [cell.name for cell in ALL]
    own = cells[RELEASE].channel
    assert own == ReleaseChannelSettings.model_validate({"allow_small": True})
    assert (str(cells[OLD].channel.n), cells[OLD].channel.memo, cells[OLD].vectors) == ("3-14", "patient", "paper")
    assert (str(cells[PAPER_7].channel.n), cells[PAPER_7].channel.memo) == ("7", "occurrence")
    every = grid("paper")
    assert len({(cell.vectors, cell.told, cell.name == RELEASE, cell.name == CONTROL) for cell in every}) == len(every)


def test_nothing_on_the_frontier_is_bettered():
    places = {"keeps most": (0.9, 0.8), "reads least": (0.2, 0.1), "between": (0.6, 0.4), "worse": (0.5, 0.5)}
    assert best_of(places) == {"keeps most", "reads least", "between"}
    assert best_of({"one": (0.5, 0.5), "twin": (0.5, 0.5)}) == {"one", "twin"}
    assert best_of({"more kept": (0.6, 0.5), "less kept": (0.5, 0.5)}) == {"more kept"}
    assert best_of({}) == set()


def test_the_chart_marks_the_papers_settings_and_the_frontier():
    cells = tuple(cell for cell in ALL if cell.name in (OLD, RELEASE, "matched-30"))
    values = {OLD: (0.3, 0.8), RELEASE: (0.9, 0.2), "matched-30": (0.5, 0.5)}
    findings = [f for name, (kept, read) in values.items() for f in _both(name, kept, read)]
    figure = figures(Results(None, tuple(findings), {"cells": cells}))["frontier"][0]
    assert "release: 90% kept, 20% read" in figure.says
    assert [name for _, name in figure.legend] == ["no other one betters it", "a paper's setting", "other settings"]


def _both(name, kept, read):
    yield Finding(KEPT, kept, 10, "higher", detail={"setting": name, "model": "lr"})
    yield Finding("study.strongest", read, 10, "lower", detail={"setting": name, "stratum": "all"})


def test_the_strongest_reader_is_named_and_the_readers_own_control_is_none():
    def read(value, reader, **more):
        detail = {"setting": "s", "stratum": "all", "reader": reader, **more}
        return Finding("attack.reading.all", value, 10, "lower", detail=detail)

    findings = [read(0.2, "unigram"), read(0.4, "bigram"), read(1.0, "bigram", unprotected=True)]
    (only,) = strongest(findings)
    assert (only.measure, only.value, only.detail["reader"]) == ("study.strongest", 0.4, "bigram")


def test_the_share_kept_has_the_interval_of_the_loss():
    whole = Finding("utility.classification", 0.8, 10, "higher", chance=0.2)
    loss = Finding("utility.classification_loss", 0.2, 10, "lower", 0.1, 0.4)
    found = kept(whole, loss)
    assert (found.value, found.low, found.high) == pytest.approx((0.75, 0.5, 0.875))
    assert found.chance == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("given", "places", "said"),
    [
        ({"label": ()}, {}, "nothing to measure by"),
        ({"label": ("a", "b")}, {}, "one label"),
        ({"match": "name"}, {}, "go together"),
        ({}, {"pairs": ("x",)}, "--order-tasks"),
    ],
)
def test_what_cannot_be_asked_together_is_said(given, places, said, tmp_path):
    with pytest.raises(UsageError, match=said):
        run_study(tmp_path / "none", tmp_path / "out", load_settings(StudySettings, {**TINY, **given}), **places)


def test_public_knowledge_links_what_is_not_protected(tmp_path):
    rows = ["id,name,text,public"]
    for i in range(40):
        own = " ".join(f"word{(i * 7 + j) % 97}x" for j in range(40))
        rows.append(f"n{i},person {i},{_letters(own)},{_letters(own)} and more")
    path = tmp_path / "people.csv"
    path.write_text("\n".join(rows))
    told = {**TINY, "label": (), "match": "name", "known_text": "public", "id": "id", "text": "text"}
    settings = load_settings(StudySettings, {**told, "setting": (CONTROL,)})
    results = run_study(path, tmp_path / "out", settings, known=path)
    detail = {"setting": CONTROL, "attacker": "without the vectors", "source_of_knowledge": "what is publicly known"}
    assert results.of("attack.linkage", **detail).value == 1


def _letters(text):
    return text.translate(str.maketrans("0123456789", "abcdefghij"))
