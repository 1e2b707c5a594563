"""Notes that the detectors cannot read: other languages are left out, RTF and base64 are
refused.
"""

from __future__ import annotations

import base64
import csv
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clinveil.cli import main
from clinveil.core import InputError
from clinveil.corpus import NOT_ENGLISH, open_corpus, rows
from clinveil.corpus.screen import MOST_LEFT_OUT, has_encoded_block
from clinveil.lexicons import is_english
from clinveil.lexicons.language import LOWEST_SHARE, word_shares

FOREIGN = {
    "Spanish": (
        "Paciente de 71 años que ingresa por fiebre y tos desde hace tres días. Antecedentes de"
        " diabetes y bronquitis crónica. En la radiografía se observa un infiltrado basal. Se"
        " inicia tratamiento antibiótico."
    ),
    "Spanish, terse": (
        "MC: disnea. AP: HTA, EPOC. EF: sibilancias, edemas en ambas piernas. Plan: oxígeno,"
        " furosemida, nebulizaciones cada 6 horas, control de diuresis y peso diario, dieta sin"
        " sal."
    ),
    "Spanish, capitals": (
        "ECOGRAFIA RENAL: RIÑONES DE TAMAÑO Y FORMA NORMALES. NO SE OBSERVAN LITIASIS NI DILATACION"
        " DE LA VIA EXCRETORA. VEJIGA SIN ALTERACIONES. SE SUGIERE CONTROL EN SEIS MESES."
    ),
    "French": (
        "Le patient est adressé pour une toux qui dure depuis un mois. Il fume dix cigarettes par"
        " jour. La radiographie du thorax est normale. Nous proposons un scanner et un arrêt du"
        " tabac."
    ),
    "German": (
        "Die Patientin klagt seit einer Woche über Schwindel und Kopfschmerzen. Der Blutdruck war"
        " mit 170/95 erhöht. Wir haben die Medikation angepasst und bitten um eine Kontrolle beim"
        " Hausarzt."
    ),
    "German, terse": (
        "RR 150/90, Puls 88, T 37,2. Herz rein, rhythmisch. Lunge frei. Abdomen weich, keine"
        " Resistenzen. Beine ohne Ödeme. Weiter mit bisheriger Medikation, nächste Vorstellung in"
        " drei Monaten."
    ),
    "Portuguese": (
        "A doente refere dores nas costas há duas semanas, sem febre nem perda de peso. Ao exame"
        " apresenta contractura muscular. Foi medicada com paracetamol e vai voltar se não"
        " melhorar."
    ),
    "Dutch": (
        "De patiënt heeft al een week last van hoesten en is benauwd bij het traplopen. Over de"
        " longen zijn crepitaties te horen. Wij starten met een antibioticum en zien hem over twee"
        " dagen terug."
    ),
    "Italian": (
        "La paziente riferisce dolore alla spalla destra dopo una caduta in casa. La radiografia"
        " non mostra fratture. Si consiglia riposo, ghiaccio e un controllo tra dieci giorni se il"
        " dolore persiste."
    ),
    "Polish": (
        "Pacjentka zgłasza ból głowy od trzech dni, bez gorączki i wymiotów. Ciśnienie w normie."
        " Zalecono odpoczynek, leki przeciwbólowe oraz kontrolę za tydzień, jeżeli objawy nie"
        " ustąpią."
    ),
    "Russian": (
        "Больная жалуется на кашель и слабость в течение недели. Температура тела нормальная. В"
        " лёгких дыхание везикулярное, хрипов нет. Назначено обильное питьё и повторный осмотр"
        " через три дня."
    ),
    "Chinese": (
        "患者女性，七十岁，因反复咳嗽三周入院。既往有高血压病史。"
        "查体双肺未闻及啰音。"
        "给予抗感染治疗后好转，嘱定期复查。"
    ),
    "Vietnamese": (
        "Bệnh nhân nữ 52 tuổi đến khám vì đau bụng từ hai ngày nay, không sốt, không nôn. Bụng mềm,"
        " ấn đau nhẹ vùng thượng vị. Cho thuốc và hẹn tái khám sau một tuần."
    ),
}
ENGLISH = {
    "prose": (
        "The patient is a 54-year-old man who was admitted with chest pain that began this morning"
        " while he was walking to work. He denies fever."
    ),
    "general practice": (
        "r/v BP. 148/92 home. U&E NAD. Incr Ramipril 5. Nil SOB nil CP. Ex smoker. Repeat bloods"
        " 1/12, r/v 6/52 or sooner prn. Happy w plan. Flu jab done."
    ),
    "drugs": (
        "Metformin 1 g BD, Ramipril 5 mg OD, Atorvastatin 40 mg nocte, Aspirin 75 mg, Lansoprazole,"
        " Salbutamol inhaler, Paracetamol prn, Codeine, Senna, Lactulose, Bisoprolol, Furosemide,"
        " Warfarin, Insulin, Morphine patches"
    ),
    "capitals": (
        "CT HEAD: NO ACUTE BLEED OR MASS. MILD CHRONIC SMALL VESSEL DISEASE. SINUSES CLEAR."
        " IMPRESSION: NORMAL FOR AGE. FOLLOW UP AS NEEDED PER CLINICAL JUDGEMENT OF THE TEAM."
    ),
    "header": (
        "Name: Maria Gutiérrez de la Cruz; Address: 12 Rue des Lilas, Apt 4; Phone: 216-555-0144;"
        " Clinician: Dr. Olaf Björnsson; Next of kin: José Núñez, Juana la Torre; Ward: 7 West;"
        " Diet: normal; Allergies: none known"
    ),
    "codes": " ".join(
        f"{code} {number}"
        for number, code in enumerate(["bun", "cr", "hgb", "plt", "ast", "alt"] * 6)
    ),
    "invented words": " ".join(f"w{chr(97 + number % 26)}x" for number in range(60)),
    "short": "Paciente estable, sin fiebre ni dolor.",
}


@pytest.mark.parametrize("language", FOREIGN)
def test_notes_in_other_languages(language: str) -> None:
    assert not is_english(FOREIGN[language])


@pytest.mark.parametrize("kind", ENGLISH)
def test_english_notes_and_short_ones(kind: str) -> None:
    assert is_english(ENGLISH[kind])


def test_terse_notes_are_english() -> None:
    folder = Path(__file__).parents[1] / "phi" / "terse"
    texts = [
        text
        for file in folder.glob("*.txt")
        for text in file.read_text(encoding="utf-8").split("\n---\n")
    ]
    texts = [re.sub(r"\{[A-Z]+:([^}]*)\}", r"\1", text) for text in texts]
    shares = [share for text in texts if (share := word_shares(text)) is not None]
    assert len(shares) > 20
    assert min(share.english for share in shares) > LOWEST_SHARE + 0.1


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("notes/mtsamples.csv.gz", "transcription"),
        ("notes/aci_bench.csv.gz", "note"),
        ("notes/mts_dialog.csv.gz", "dialogue"),
        ("classification/ohsumed_train.csv.gz", "text"),
    ],
)
def test_no_public_english_note_is_left_out(
    name: str, column: str, real_data: Callable[[str], Path]
) -> None:
    with gzip.open(real_data(name), "rt", encoding="utf-8", newline="") as file:
        texts = [row[column] for row in csv.DictReader(file)]
    shares = [share for text in texts if (share := word_shares(text)) is not None]
    assert min(share.english for share in shares) > LOWEST_SHARE + 0.1


VOCABULARY = """\
chest pain fever cough admitted treated stable discharged clinic review blood pressure the
patient was with and seen for after denies reports normal exam heart lungs abdomen"""
WORDS = VOCABULARY.split()


def note(number: int) -> str:
    rng = np.random.default_rng(number)
    return " ".join(rng.choice(WORDS, 60)) + "."


def write(path: Path, others: list[str], count: int = 300) -> Path:
    """Write English notes of 60 patients, and others at the end."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["note_id", "patient_id", "text"])
        prefix = path.stem
        writer.writerows([f"{prefix}-{n}", f"p{n % 60}", note(n)] for n in range(count))
        writer.writerows([f"{prefix}-x{n}", f"q{n}", text] for n, text in enumerate(others))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    status = main([*map(str, arguments), "--workers", "1", "-q"])
    return status, capsys.readouterr().err


COMMANDS = {
    "deidentify": ("deidentify",),
    "deidentified": ("release", "--as", "deidentified"),
    "obfuscated": ("release", "--as", "obfuscated"),
    "synthetic": ("release", "--as", "synthetic"),
}
SPANISH = list(FOREIGN.values())[:4]


@pytest.mark.parametrize("name", COMMANDS)
def test_more_than_one_percent_stops_the_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "a.csv", SPANISH)
    status, message = run(capsys, *COMMANDS[name], source, "-o", tmp_path / "out")
    assert status == 3
    assert "a.csv, rows 301, 302, 303, 304: 4 of 304 notes not in English" in message
    assert "--set identifiers.language=any" in message
    assert "Paciente" not in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["deidentify", "deidentified", "obfuscated"])
def test_part_files_are_judged_together(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "parts"
    write(folder / "a.csv", SPANISH)
    write(folder / "b.csv", SPANISH[:3])
    status, message = run(capsys, *COMMANDS[name], folder, "-o", tmp_path / "out")
    assert status == 3
    assert "a.csv, rows 301, 302, 303, 304; b.csv, row 301, …: 7 of 607 notes" in message


@pytest.mark.parametrize("parts", [False, True])
def test_few_are_left_out_and_counted(
    parts: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert MOST_LEFT_OUT == 0.01
    source = write(tmp_path / "parts" / "a.csv", SPANISH[:3])
    source = source.parent if parts else source
    vault = tmp_path / "vault"
    out = tmp_path / "out"
    assert run(capsys, "deidentify", source, "-o", out, "--vault", vault)[0] == 0
    record = json.loads((vault / "deidentify.json").read_text(encoding="utf-8"))
    assert record["notes_read"] == 303
    assert record["notes_written"] == 300
    assert record["skipped"] == {NOT_ENGLISH: 3}
    assert "Paciente" not in "".join(
        file.read_text("utf-8") for file in out.rglob("*") if file.is_file()
    )


def test_a_release_counts_them_and_states_any_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "a.csv", SPANISH[:3])
    out = tmp_path / "out"
    run(capsys, "release", source, "--as", "deidentified", "-o", out)
    record = json.loads(next(out.rglob("vault/**/record.json")).read_text(encoding="utf-8"))
    assert NOT_ENGLISH in json.dumps(record)
    assert "not checked for English" not in json.dumps(record)
    again = tmp_path / "with its own ledger" / "again"
    again.parent.mkdir()
    any_language = ["--set", "identifiers.language=any", "--again"]
    run(capsys, *COMMANDS["deidentified"], source, "-o", again, *any_language)
    record = json.loads(next(again.rglob("vault/**/record.json")).read_text(encoding="utf-8"))
    assert NOT_ENGLISH not in json.dumps(record)
    assert "not checked for English" in json.dumps(record)


def test_html_is_judged_by_what_is_displayed(tmp_path: Path) -> None:
    attributes = (
        "title='the patient was seen and then he was well with the same plan as before for her'"
    )
    marked = f"<html><body {attributes}><p>{FOREIGN['French']}</p></body></html>"
    corpus = open_corpus(write(tmp_path / "a.csv", [marked], 5)).screened("english")
    assert len(list(rows(corpus))) == 5


BLOCKS = {
    "RTF": ("{\\rtf1\\ansi\\deff0 Seen by Dr. Okwuosa\\par}", "in RTF"),
    "RTF after a line": ("Note:\n{\\rtf1\\ansi Seen\\par}", "in RTF"),
    "base64 lines": ("Scan:\n" + base64.encodebytes(bytes(range(256)) * 2).decode(), "base64"),
    "base64 image": (
        f"<img src='data:image/png;base64,{base64.b64encode(bytes(range(256))).decode()}'>",
        "base64",
    ),
}


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("name", ["deidentify", "deidentified", "obfuscated"])
def test_rtf_and_base64_are_refused(
    kind: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, reason = BLOCKS[kind]
    source = write(tmp_path / "a.csv", [text])
    status, message = run(capsys, *COMMANDS[name], source, "-o", tmp_path / "out")
    assert status == 3
    assert reason in message
    assert "a.csv, row 301: 1 of 301 notes" in message
    assert not (tmp_path / "out").exists()


def test_long_words_that_are_not_base64() -> None:
    dna = "ACGT" * 100
    url = "https://hospital.example.org/" + "/".join(["Report2024"] * 5) + "?q=" + "x" * 80
    for text in (dna, url, "_" * 300, "=" * 300, "1" * 10_000_000, "a" * 400):
        assert not has_encoded_block(text)


def test_rows_entered_in_error_keep_the_numbers(tmp_path: Path) -> None:
    path = tmp_path / "NOTEEVENTS.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["ROW_ID", "SUBJECT_ID", "ISERROR", "TEXT"])
        writer.writerow([1, 1, 1, note(1)])
        writer.writerow([2, 1, "", FOREIGN["French"]])
        writer.writerow([3, 1, "", note(3)])
    corpus = open_corpus(path).screened("english")
    assert [note.note_id for note in rows(corpus)] == ["3"]
    with pytest.raises(InputError, match=r"NOTEEVENTS.csv, row 2: 1 of 2 notes not in English"):
        corpus.seen.refuse()
