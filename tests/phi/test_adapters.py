"""Detectors of other libraries: their spans under our labels, none of their downloads, one line
where they lack.
"""

from __future__ import annotations

import json
import pickle
import re
import shlex
import sys
import warnings

import pytest

from clinveil.cli import main
from clinveil.core import InputError, InputWarning, Key, MissingExtra, UsageError, read_findings
from clinveil.corpus import memory_corpus
from clinveil.phi import NoteDeidentifier, NoteView, PhiSettings, deidentify_corpus
from clinveil.phi.detection import adapters
from clinveil.phi.detection.adapter import Adapter, Prediction
from clinveil.phi.detection.adapters import (
    AdapterDetector,
    adapters_for,
    loaded_adapter,
)
from clinveil.scale import processes


def found(detector, text):
    return [(text[span.start : span.end], span.label) for span in detector.find(NoteView(text))]


class _Reader:
    labels = ("B-PERSON", "I-PERSON", "DATE", "AGE", "KUDOS", "O", "MRN")

    def predict(self, text):
        for word, label in {
            "Dr. Zy": "B-PERSON",
            "daily": "DATE",
            "May 2": "DATE",
            "99": "AGE",
            "Q7": "MRN",
        }.items():
            if (at := text.find(word)) >= 0:
                yield Prediction(at, at + len(word), label, 2.0)


@pytest.fixture
def fake(monkeypatch):
    reader = Adapter("fake", lambda where: _Reader(), needs_path=False)
    monkeypatch.setattr(adapters, "ADAPTERS", (reader,))
    yield "fake"
    loaded_adapter.cache_clear()


class TestAnyAdapter:
    def test_labels_are_mapped_trimmed_and_checked(self, fake):
        text = "Then Dr. Zy, 99, gave it daily from May 2. Q7"
        assert found(AdapterDetector(fake), text) == [
            ("Zy", "NAME"),
            ("May 2", "DATE"),
            ("Q7", "MRN"),
        ]
        assert AdapterDetector(fake).labels == {"NAME", "DATE", "MRN"}

    def test_labels_that_are_not_understood_are_said(self, fake):
        with pytest.warns(InputWarning, match="ignored labels without a mapping: KUDOS"):
            adapters_for([fake, fake])

    def test_an_engine_replaces_the_detectors_of_clinveil(self, fake, tmp_path, capsys):
        text = "Dr. Zy saw Dr. Smith. Q7"
        (tmp_path / "notes.csv").write_text(f'id,patient,text\n1,a,"{text}"\n', encoding="utf-8")
        gold = [{"note_id": "1", "start": at, "end": at + len(name), "label": "NAME", "text": name}
                for name in ("Zy", "Smith") for at in [text.index(name)]]  # fmt: skip
        (tmp_path / "gold.jsonl").write_text(
            "".join(json.dumps(span) + "\n" for span in gold), encoding="utf-8"
        )
        command = [
            "evaluate",
            "deidentification",
            str(tmp_path / "notes.csv"),
            "--gold",
            str(tmp_path / "gold.jsonl"),
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            assert (
                main(
                    [
                        *command,
                        "--engine",
                        "fake",
                        "--set",
                        "workers=1",
                        "--json",
                        str(tmp_path / "f.json"),
                    ]
                )
                == 0
            )
        found = read_findings(tmp_path / "f.json")
        recall = next(f for f in found if "recall" in f.measure and "NAME" in f.labels)
        assert recall.value == 0.5

    def test_spans_carry_its_name_its_own_label_and_a_score_that_fits(self, fake):
        (span,) = AdapterDetector(fake).find(NoteView("Dr. Zy"))
        assert (span.detector, span.why, span.score) == ("fake", "PERSON", 1.0)

    def test_settings_bring_it_in(self, fake):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            engine = NoteDeidentifier.of(PhiSettings(also=("fake",), mode="tag"), Key.from_seed(1))
        assert engine.treat("x Q7", engine.find("x Q7"))[0] == "x [MRN]"


@pytest.mark.parametrize(
    ("spec", "error", "said"),
    [
        ("nothing", UsageError, "unknown adapter"),
        ("hf", UsageError, "needs a folder"),
        ("presidio:en_core_web_sm", InputError, "no such folder"),
        ("hf:bert-base-cased", InputError, "no such folder"),
    ],
)
def test_what_does_not_fit_is_one_line(spec, error, said):
    with pytest.raises(error, match=said):
        loaded_adapter(spec)


@pytest.mark.parametrize(("kind", "library"), [("hf", "transformers"), ("presidio", "spacy")])
def test_a_missing_library_is_a_missing_extra(kind, library, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    with pytest.raises(MissingExtra, match=r"pip install 'clinveil\["):
        AdapterDetector(kind if kind == "presidio" else f"{kind}:{tmp_path}")


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    """A real spaCy pipeline on disk: entities by pattern."""
    spacy = pytest.importorskip("spacy", reason="extra [presidio] is not installed")
    language = spacy.blank("en")
    ruler = language.add_pipe("entity_ruler")
    patterns = {"PERSON": "Zwiyemi", "GPE": "Xanth", "DATE": "daily", "GADGET": "gizmo"}
    ruler.add_patterns([{"label": label, "pattern": word} for label, word in patterns.items()])
    folder = tmp_path_factory.mktemp("pipelines") / "site"
    language.to_disk(folder)
    return folder


@pytest.fixture
def detector():
    pytest.importorskip("presidio_analyzer", reason="extra [presidio] is not installed")
    return loaded_adapter("presidio")


class TestPresidio:
    def test_what_it_finds(self, detector):
        text = (
            "Mail to jsmith@stmarys.local or 617-555-0199; social security number is 536 22 1234;"
            " ICD E11.9, x4567."
        )
        hits = found(detector, text)
        assert ("jsmith@stmarys.local", "EMAIL") in hits
        assert ("617-555-0199", "PHONE") in hits
        assert ("536 22 1234", "SSN") in hits
        assert not [word for word, _ in hits if "E11" in word or "4567" in word]

    def test_all_its_labels_are_understood_and_no_name_is_promised(self, detector):
        assert detector.unknown == []
        assert "NAME" not in detector.labels

    def test_with_a_pipeline_it_finds_names(self, pipeline, detector):
        both = loaded_adapter(f"presidio:{pipeline}")
        assert ("Zwiyemi", "NAME") in found(both, "Told\u200b Zwiyemi.")

    def test_a_worker_loads_it_too(self, pipeline, detector):
        again = pickle.loads(pickle.dumps(loaded_adapter(f"presidio:{pipeline}")))
        assert ("Zwiyemi", "NAME") in found(again, "Zwiyemi")

    def test_a_folder_that_is_no_pipeline(self, tmp_path, detector):
        with pytest.raises(InputError, match="cannot load a spaCy pipeline"):
            loaded_adapter(f"presidio:{tmp_path}")

    def test_it_works_in_a_corpus(self, detector):
        engine = NoteDeidentifier.of(PhiSettings(also=("presidio",), mode="tag"), Key.from_seed(1))
        notes = memory_corpus([("n1", "p1", "Card 4111111111111111."), ("n2", "p2", "no pain")])
        (done,) = deidentify_corpus(notes, engine, processes(1))
        assert done.batch["text"].to_pylist() == ["Card [ACCOUNT].", "no pain"]


WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "Dr",
    "came",
    "today",
    "and",
    "saw",
    "the",
    "patient",
    "has",
    "pain",
    ".",
]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """A small BERT on disk, trained here: an unknown word is a patient."""
    transformers = pytest.importorskip(
        "transformers", reason="extra [huggingface] is not installed"
    )
    torch = pytest.importorskip("torch")
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("models") / "trained"
    inner = Tokenizer(
        models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, model_max_length=24, **names
    )
    config = transformers.BertConfig(
        **{
            "vocab_size": len(WORDS),
            "hidden_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
        },
        **{"intermediate_size": 32, "max_position_embeddings": 32, "hidden_dropout_prob": 0.0},
        id2label={0: "O", 1: "B-PATIENT", 2: "I-GADGET"},
    )
    torch.manual_seed(1)
    model = transformers.BertForTokenClassification(config)
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(40):
        ids = torch.randint(4, len(WORDS), (16, 24))
        ids[torch.rand(ids.shape) < 0.2] = WORDS.index("[UNK]")
        model(input_ids=ids, labels=(ids == WORDS.index("[UNK]")).long()).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def copied(folder, target, *names):
    for path in folder.iterdir():
        if path.name not in names:
            (target / path.name).write_bytes(path.read_bytes())
    return target


class TestHuggingFace:
    def test_a_model_from_disk(self, classifier):
        detector = loaded_adapter(f"hf:{classifier}")
        assert found(detector, "Dr Zwiyemi came .") == [("Zwiyemi", "NAME")]
        assert detector.unknown == ["I-GADGET"] and detector.name == "huggingface"
        assert found(detector, "") == found(detector, " \n") == []

    @pytest.mark.parametrize("shift", range(0, 12, 3))
    def test_each_name_of_a_long_note_is_one_span_wherever_the_windows_end(self, classifier, shift):
        text = "pain " * shift + "the patient has pain . Dr Zwiyemi came today and " * 60
        spans = list(loaded_adapter(f"hf:{classifier}").find(NoteView(text)))
        names = [match.span() for match in re.finditer("Zwiyemi", text)]
        assert [(span.start, span.end) for span in spans] == names

    def test_it_joins_the_detectors_of_a_run(self, classifier, tmp_path):
        (tmp_path / "notes.csv").write_text(
            "id,patient,text\n1,a,saw Dr zwiyemi today\n", encoding="utf-8"
        )
        command = shlex.split(
            f"deidentify {tmp_path / 'notes.csv'} -o {tmp_path / 'out.csv'} --seed 1 -q"
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            assert (
                main(
                    [
                        *command,
                        "--set",
                        f"identifiers.also=hf:{classifier}",
                        "--set",
                        "identifiers.mode=tag",
                        "--workers",
                        "1",
                    ]
                )
                == 0
            )
        assert "Dr [NAME] today" in (tmp_path / "out.csv").read_text()

    @pytest.mark.parametrize(
        "broken", ["empty", "weights", "half", "tokenizer", "pickle", "task", "labels"]
    )
    def test_a_broken_or_foreign_folder_is_one_line(self, classifier, broken, tmp_path, capsys):
        folder = tmp_path / "model"
        folder.mkdir()
        if broken in ("weights", "half", "tokenizer"):
            copied(classifier, folder, *{"tokenizer": ["tokenizer.json"]}.get(broken, []))
        if broken == "weights":
            (folder / "model.safetensors").write_bytes(b"no weights")
        if broken == "half":
            weights = (folder / "model.safetensors").read_bytes()
            (folder / "model.safetensors").write_bytes(weights[: len(weights) // 2])
        if broken == "pickle":
            copied(classifier, folder, "model.safetensors")
            (folder / "pytorch_model.bin").write_bytes(b"secret")
        if broken in ("task", "labels"):
            transformers = pytest.importorskip("transformers")
            copied(classifier, folder, "model.safetensors")
            kind = (
                "BertForSequenceClassification"
                if broken == "task"
                else "BertForTokenClassification"
            )
            config = transformers.BertConfig.from_pretrained(classifier)
            config.id2label = {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}
            getattr(transformers, kind)(config).save_pretrained(folder)
        (tmp_path / "notes.csv").write_text("id,patient,text\n1,a,well\n", encoding="utf-8")
        command = shlex.split(
            f"deidentify {tmp_path / 'notes.csv'} -o {tmp_path / 'out.csv'} --workers 1 -q"
        )
        capsys.readouterr()
        assert main([*command, "--set", f"identifiers.also=hf:{folder}"]) == 3
        said = capsys.readouterr().err.strip()
        assert (
            len(said.splitlines()) == 1
            and "secret" not in said
            and not (tmp_path / "out.csv").exists()
        )
