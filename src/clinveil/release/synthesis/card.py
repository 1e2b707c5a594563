"""The card of synthetic notes (`OUT/README.md`): Markdown with a YAML header, without a word or a number of a patient.

What it says is made of the account's counts, gates and public settings alone.
"""

from __future__ import annotations

from clinveil.lm.recipe import language_models
from clinveil.release.synthesis.gates import NOT_TRIED
from clinveil.release.synthesis.record import TEST_SEED, Account, public_manifest
from clinveil.report.card import _word, size_class
from clinveil.report.edition import hidden
from clinveil.report.numerals import number, share, small
from clinveil.report.record import Gate, Plain, score
from clinveil.report.render import environment

CARD = """\
---
pretty_name: Synthetic clinical notes
license: other
license_name: data-use-agreement
tags: [clinical-notes, synthetic, language-model, clinveil]
size_categories: [{{ size }}]
---

# Synthetic clinical notes

**These notes are synthetic.** A language model that was trained on real clinical notes wrote all of them; \
no clinician did. **{{ score }}. A gate that passed means that this attack \
failed; it never means "safe".** This is evidence for a qualified reviewer, not a determination.

{% if seeds %}
**{{ mark }}.** {{ seeds }} Anybody can repeat what came of a public seed.

{% endif %}
The notes are not true of anybody. Do not use them for care, for decisions about patients, or to learn how often \
something occurs. Do not try to identify anyone.

## What is in it

| | |
| --- | ---: |
| Notes (`{{ notes.file }}`; columns `{{ notes.id }}`, `{{ notes.text }}`) | {{ "{:,}".format(counts.notes) }} |
| Words | {{ "{:,}".format(counts.words) }} |
| of which `<unk>` | {{ "{:,}".format(counts.unknown) }} ({{ counts.unknown_share|share }}) |
| Notes cut at the longest length ({{ "{:,}".format(settings.longest) }} tokens) | \
{{ "{:,}".format(counts.truncated) }} |
| Notes without a word, left out | {{ "{:,}".format(counts.empty) }} |

`<unk>` stands for a word that fewer than {{ settings.min_patients }} patients of the training notes used, or that the \
model does not know. A line holds a sentence, with one space between tokens.

## How it was made

By {{ kind }}; its vocabulary are {{ "whole words" if model.vocabulary == "words" else "byte pairs" }}. It was trained \
{{ "by an earlier run" if model.trained == "before" else "for these notes" }}, and is no part of them.

| Setting | Value |
| --- | --- |
{% for name, value in facts.items() %}
| {{ name|replace("_", " ")|md }} | {{ value|word|md }} |
{% endfor %}
| seed of the draws | {{ "**public**" if "notes" in public_seeds else "secret key" }} |
| seed of the model | {{ "**public**" if "model" in public_seeds else "secret" }} |

## Gates

| Gate | Value | At most | Verdict | What it says |
| --- | ---: | ---: | --- | --- |
{% for gate in gates %}
| {{ gate.name|md }} | {{ gate|figure(gate.value)|md }} | {{ gate|figure(gate.threshold)|md }} | \
{{ gate.outcome if gate.passed else "FAILED" }} | {{ gate.question|md }} {{ gate.meaning|md }} \
{{ gate.power|md }} |
{% endfor %}
{% if not settings.patients_given %}

Names of known patients were **not** looked for: no list of them was given.
{% endif %}

## Limits

{% for line in not_tried %}
- Not tried: {{ line|md }}.
{% endfor %}
- The command that wrote these notes runs no audit of the model: neither S-PDTP nor membership inference nor canaries. \
Whether they were run apart is not recorded here; ask whoever made the notes.
- A rare combination of common words can still be somebody's.
- Whoever gets the model learns more than is measured here. More notes of the same model or patients would give an \
attacker more to read.

## Provenance

| | |
| --- | --- |
| Made | {{ created|md }} with clinveil {{ version|md }} |
{% for name, digest in files.items() %}
| {{ name|md }} (SHA-256) | {{ digest|md }} |
{% endfor %}
| key commitment (SHA-256) | {{ key_commitment|md }} |

`manifest.json` holds every figure that was measured. Check the files with `clinveil verify .` or \
`sha256sum --check SHA256SUMS`.
"""


def render_card(account: Account, files: dict[str, str]) -> str:
    """The card; `files` are the notes with their hashes."""
    said = public_manifest(account, files)
    made = environment().overlay(autoescape=False)
    made.filters = made.filters | {"share": share, "word": _word, "figure": _figure}
    recipe = {name: value for name, value in (account.trained.recipe or {}).items() if name != "kind"}
    kind = account.trained.model.kind
    page = made.from_string(CARD).render(
        said
        | {
            "gates": account.gates,
            "score": score(account.gates),
            "size": size_class(account.counts.notes),
            "kind": language_models.get(kind).about if kind in language_models else "a language model",
            "facts": said["settings"] | recipe,
            "seeds": _seeds(account),
            "mark": TEST_SEED,
            "not_tried": NOT_TRIED,
        }
    )
    return f"{page}\n"


def _seeds(account: Account) -> str:
    drawn = "The notes were drawn under a public seed." if "notes" in account.public_seeds else ""
    trained = "The model was trained with a public seed." if "model" in account.public_seeds else ""
    return f"{drawn} {trained}".strip()


def _figure(gate: Gate, value: Plain) -> str:
    """What a gate measured or allows; small counts of people's names are hidden as in other external reports."""
    if not isinstance(value, float | int):
        return _word(value)
    if hidden(value, gate.unit, "external"):
        return small().text
    return number(value, "share" if gate.unit.startswith("share") else "count").text
