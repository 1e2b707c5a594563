"""Compare a small neural tagger with the CRF of the package, on public data.

`python training/compare_taggers.py DATA FOLDER STEP`, with `src`, `training` and `tests/phi` on
PYTHONPATH. DATA is the folder of public data. FOLDER keeps texts, labels, weights and counts
between the steps; choose one outside the repository. Steps:

1. `texts`: (a) the texts of `train_bundled`; (b) these and passages of public text with the names
   that the model of the extra `accurate` finds. A passage in which the other detectors find another
   name is left out. Names are replaced, so that no held-out name is trained on.
2. `crf --version a|b` and `neural --version a|b` (needs torch).
3. `measure --tagger bundled|crf-a|… [--without-rules]`, on texts that no version is trained on.
4. `report`: recall, notes with a miss, names outside gold; 95 % intervals by bootstrap over frames
   or texts, and the interval of the difference from the bundled model.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from random import Random

import frames
import numpy as np
from numpy.typing import NDArray

import train_bundled
from clinveil.core import Span
from clinveil.phi import (
    DETECTORS,
    EDGE,
    Features,
    Finder,
    NoteView,
    PhiSettings,
    SecondOpinion,
    Tagger,
    TaggerDetector,
    TaggerModel,
    Tokens,
    WordColumn,
    kept_form,
    load_tagger,
    own_tagger,
    word_hash,
)
from tagger_training import invent
from tagger_training.invent import Labelled
from tagger_training.people import People
from tagger_training.train import (
    MIN_TEXTS,
    labelled_tokens,
    save_tagger,
    threshold_within,
    train_tagger,
)
from train_bundled import MOST_FALSE, SEED, mtsamples, part, sentences, table

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
LABELS = ("O", "B-NAME", "I-NAME")
BUCKETS = 1 << 14
DIMENSIONS = 48
HIDDEN = 64
DILATIONS = (1, 2, 4)
REACH = sum(DILATIONS)
# measurement
NAMES_PER_FRAME = 8
SPEED_NOTES = 150
MEASURED_SENTENCES = 500
# training
EPOCHS = 8
BATCH = 3000  # tokens
RATE = 3e-3
DROPPED = 0.1  # of the properties and of the hidden values
_IGNORED = -100
_HELD_PARTS = (1, 2)  # of 25: actors and sentences that are measured
_PASSAGE = 3  # sentences
PASSAGES_OF_NOTES = 6000
TRAINED_ACTORS = 3500


def is_trained(key: str) -> bool:
    """Return whether an actor or a Wikipedia sentence may be in training texts."""
    return part(key, 25) not in _HELD_PARTS


def passages(texts: list[str]) -> list[str]:
    """Return runs of a few sentences."""
    return [
        " ".join(run)
        for text in texts
        for split in [sentences([text])]
        for run in (split[first : first + _PASSAGE] for first in range(0, len(split), _PASSAGE))
    ]


def wikipedia(data: Path, *, trained: bool) -> list[str]:
    """Return the Wikipedia sentences that are trained on, or those that are measured."""
    lines = train_bundled.lines_of(data / "casing" / "wiki_sentences.txt.gz")
    return [train_bundled.spaced(line) for line in lines if is_trained(line.strip()) == trained]


def public_passages(data: Path, rng: Random) -> list[str]:
    """Return the unlabelled passages of training."""
    rows = table(data / "people" / "actors.csv.gz")
    actors = [row["text"] for row in rows if part(row["id"], 5) and is_trained(row["id"])]
    measured = "\n".join(map(_letters, mtsamples(data, (3, 4))))
    dialogues = [
        row["dialogue"]
        for row in table(data / "notes" / "mts_dialog.csv.gz")
        if _letters(row["section_text"])[:60] not in measured
    ]
    clinical = passages(mtsamples(data, (0, 1, 2)))
    return [
        *rng.sample(clinical, PASSAGES_OF_NOTES),
        *wikipedia(data, trained=True),
        *passages(rng.sample(actors, TRAINED_ACTORS)),
        *passages(dialogues),
    ]


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text.lower()))


def model_names(text: str) -> tuple[Span, ...]:
    """Return the names that the model of the extra `accurate` finds, filtered by the word lists."""
    spans = SecondOpinion().find(NoteView(text), [])
    return tuple(sorted(span for span in spans if span.label == "NAME"))


def labelled_by_model(texts: list[str], people: People, rng: Random) -> Iterator[Labelled]:
    """Yield passages with the model's names replaced, unless other detectors find other names."""
    finder = Finder.of(PhiSettings(second_opinion="off"))
    for text in texts:
        names = model_names(text)
        covered = {offset for span in names for offset in range(span.start, span.end)}
        others = (span for span in finder.find(text) if span.label == "NAME")
        if all(covered.issuperset(_letter_offsets(text, span)) for span in others):
            refilled = invent.refilled(Labelled(text, names), people, rng)
            yield invent.in_other_case(refilled, rng)


def _letter_offsets(text: str, span: Span) -> Iterator[int]:
    return (offset for offset in range(span.start, span.end) if text[offset].isalpha())


def make_texts(data: Path, folder: Path) -> None:
    """Write the training texts (a) and (b)."""
    plain = train_bundled.texts(data, Random(SEED), is_trained)
    train_bundled.check_no_name_is_held_out(plain)
    _report_texts("(a)", plain)
    _write(folder / "a.json", plain)
    rng = Random(SEED + 1)
    public = list(labelled_by_model(public_passages(data, rng), People(), rng))
    train_bundled.check_no_name_is_held_out(public)
    _report_texts("public text", public)
    _write(folder / "b.json", invent.all_texts([plain, public], Random(SEED)))


def _report_texts(source: str, texts: list[Labelled]) -> None:
    names = sum(len(text.spans) for text in texts)
    seconds = time.process_time()
    print(f"{source}: {len(texts)} texts with {names} names, {seconds:.0f} s", flush=True)


def train_crf(data: Path, folder: Path, version: str) -> None:
    """Fit a CRF on the texts (a) or (b), with a threshold for the bound of `train_bundled`."""
    texts = _read(folder / f"{version}.json")
    card = {"texts_of": version}
    model = train_tagger(texts, ("NAME",), 0.5, card, train_bundled.vocabulary(data))
    tuning = train_bundled.tuning(data)
    threshold = threshold_within(Tagger(model), tuning, MOST_FALSE)
    save_tagger(replace(model, threshold=threshold), folder / f"crf-{version}.npz", force=True)
    print(f"crf-{version}: threshold {threshold:.4f}, {time.process_time():.0f} s", flush=True)


@dataclass(frozen=True)
class Network:
    """A small network: hashed properties of a word, three dilated convolutions, label scores.

    Attributes:
        embedding: bucket x dimension.
        layers: per convolution, weights (3 x input x output) and bias.
        scores, bias: hidden x label, label.
        vocabulary: hashes of words that are not names, for `Features`.
    """

    embedding: Floats
    layers: tuple[tuple[Floats, Floats], ...]
    scores: Floats
    bias: Floats
    vocabulary: NDArray[np.uint32]

    def save(self, path: Path) -> None:
        """Write the weights: the embedding as int8, the others as float16."""
        scale = np.float32(np.abs(self.embedding).max() / 127)
        arrays = {
            "embedding": np.round(self.embedding / scale).astype(np.int8),
            "scale": scale,
            "scores": self.scores.astype(np.float16),
            "bias": self.bias,
            "vocabulary": self.vocabulary,
        }
        for at, (weights, bias) in enumerate(self.layers):
            arrays[f"layer{at}"] = weights.astype(np.float16)
            arrays[f"bias{at}"] = bias.astype(np.float16)
        np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def read_network(path: Path) -> Network:
    """Read the weights of a network."""
    with np.load(path, allow_pickle=False) as file:
        layers = tuple(
            (file[f"layer{at}"].astype(np.float32), file[f"bias{at}"].astype(np.float32))
            for at in range(len(DILATIONS))
        )
        return Network(
            embedding=file["embedding"] * file["scale"],
            layers=layers,
            scores=file["scores"].astype(np.float32),
            bias=file["bias"],
            vocabulary=file["vocabulary"],
        )


def buckets(features: Features, token: str) -> list[int]:
    """Return the hashed properties of a token: those of the CRF and the trigrams of a word."""
    _, *groups = features.parts(token)
    names = list(chain(*groups))
    if token[:1].isalpha():
        framed = f"^{token.lower()}$"
        names += {f"3{framed[at : at + 3]}" for at in range(len(framed) - 2)}
    return [word_hash(name) % BUCKETS for name in names]


def cache_key(token: str) -> str:
    """Return the key of a token in a cache of its properties."""
    return token if token[:1].isalpha() else f"\x00{kept_form(token)}"


class NeuralTagger(Tagger):
    """Apply a network to notes with NumPy. The first convolution is summed once per word."""

    def __init__(self, network: Network, threshold: float) -> None:
        nothing = np.zeros((1, len(LABELS)))
        moves = np.zeros((len(LABELS), len(LABELS)))
        super().__init__(
            TaggerModel(LABELS, ("0bias",), nothing, moves, network.vocabulary, threshold)
        )
        self.network = network
        self._features = Features(frozenset(network.vocabulary.tolist()))
        self._column = WordColumn(self._row, np.int32)
        self._numbers: dict[str, int] = {}
        weights, _ = network.layers[0]
        self._first = np.concatenate(list(weights), axis=1)
        self._table = np.zeros((1 << 10, 3, weights.shape[2]), np.float32)

    def _row(self, token: str) -> int:
        form = cache_key(token)
        number = self._numbers.get(form)
        if number is None:
            number = self._numbers[form] = len(self._numbers)
            if number == len(self._table):
                self._table = np.concatenate([self._table, np.zeros_like(self._table)])
            numbers = buckets(self._features, token)
            vector = self.network.embedding[numbers].sum(axis=0) * len(numbers) ** -0.5
            self._table[number] = (vector @ self._first).reshape(self._table.shape[1:])
        return number

    def probabilities(self, tokens: Sequence[str] | Tokens) -> NDArray[np.float64]:
        """Return the probability of each label at each token: token x label."""
        if isinstance(tokens, Tokens):
            inner = self._column(tokens.table, tokens.ids)
        else:
            inner = np.array([self._row(token) for token in tokens], np.int32)
        ids = np.pad(inner, REACH, constant_values=self._row(EDGE))
        first = self._table[ids]
        hidden = first[:-2, 0] + first[1:-1, 1] + first[2:, 2] + self.network.layers[0][1]
        np.maximum(hidden, 0, out=hidden)
        for dilation, (weights, bias) in zip(DILATIONS[1:], self.network.layers[1:], strict=True):
            size = len(hidden) - 2 * dilation
            windows = [hidden[at * dilation : at * dilation + size] for at in range(3)]
            added = np.concatenate(windows, axis=1) @ weights.reshape(-1, weights.shape[2]) + bias
            hidden = windows[1] + np.maximum(added, 0)
        logits = hidden @ self.network.scores + self.network.bias
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True)).astype(np.float64)
        shares: NDArray[np.float64] = exponents / exponents.sum(axis=1, keepdims=True)
        return shares


def train_neural(data: Path, folder: Path, version: str) -> None:
    """Train a network on the texts (a) or (b), then shift its scores to the bound on false words.

    The shift makes the threshold that of the bundled CRF, because `TaggerDetector` compares
    probabilities with constants.
    """
    texts = _read(folder / f"{version}.json")
    words = train_bundled.vocabulary(data)
    network = fit_network(texts, words)
    tuning = train_bundled.tuning(data)
    threshold = own_tagger().threshold
    reached = threshold_within(NeuralTagger(network, 0.5), tuning, MOST_FALSE, 1e-6)
    shift = np.log(reached / (1 - reached)) - np.log(threshold / (1 - threshold))
    bias = network.bias + np.array([shift, 0, 0], np.float32)
    network = replace(network, bias=bias)
    network.save(folder / f"neural-{version}.npz")
    print(f"neural-{version}: shift {shift:.2f}, {time.process_time():.0f} s", flush=True)


@dataclass(frozen=True)
class Encoded:
    """Texts as word numbers and label numbers, and the hashed properties of each word.

    Attributes:
        properties: of all words, one after another; `starts` and `sizes` delimit them.
        sequences: per text, numbers of its words and of their labels.
    """

    properties: Ints
    starts: Ints
    sizes: Ints
    sequences: list[tuple[Ints, Ints]]


def encode(texts: list[Labelled], features: Features) -> Encoded:
    """Return the texts in numbers; word 0 is the edge of a text."""
    numbers = {cache_key(EDGE): 0}
    properties = [buckets(features, EDGE)]
    sequences = []
    for text in texts:
        tokens, labels = labelled_tokens(text, ("NAME",))
        for token in tokens:
            if cache_key(token) not in numbers:
                numbers[cache_key(token)] = len(numbers)
                properties.append(buckets(features, token))
        if tokens:
            ids = np.array([numbers[cache_key(token)] for token in tokens])
            sequences.append((ids, np.array([LABELS.index(label) for label in labels])))
    sizes = np.array([len(numbers_of_word) for numbers_of_word in properties])
    return Encoded(np.array(list(chain(*properties))), np.cumsum(sizes) - sizes, sizes, sequences)


@dataclass(frozen=True)
class Batch:
    """Some texts, one after another with edges between them.

    Attributes:
        words: the numbers of their words in the distinct words of the batch.
        labels: the label numbers, `_IGNORED` at edges.
        properties, weights, starts: of the distinct words; a tenth of the weights is 0.
    """

    words: Ints
    labels: Ints
    properties: Ints
    weights: Floats
    starts: Ints


def batches(encoded: Encoded, rng: np.random.Generator) -> Iterator[Batch]:
    """Yield all texts once, in a random order."""
    chosen: list[tuple[Ints, Ints]] = []
    length = 0
    for index in rng.permutation(len(encoded.sequences)).tolist():
        chosen.append(encoded.sequences[index])
        length += len(chosen[-1][0]) + REACH
        if length >= BATCH:
            yield _batch(encoded, chosen, rng)
            chosen = []
            length = 0
    if chosen:
        yield _batch(encoded, chosen, rng)


def _batch(encoded: Encoded, chosen: list[tuple[Ints, Ints]], rng: np.random.Generator) -> Batch:
    gap = np.zeros(REACH, np.int64)
    ids = np.concatenate([gap, *chain(*((ids, gap) for ids, _ in chosen))])
    ignored = np.full(REACH, _IGNORED)
    labels = np.concatenate([*chain(*((labels, ignored) for _, labels in chosen))])
    distinct, words = np.unique(ids, return_inverse=True)
    sizes = encoded.sizes[distinct]
    starts = np.cumsum(sizes) - sizes
    offsets = np.arange(sizes.sum()) + np.repeat(encoded.starts[distinct] - starts, sizes)
    kept = (rng.random(len(offsets)) > DROPPED).astype(np.float32)
    left = np.maximum(np.add.reduceat(kept, starts), 1)
    weights = (kept * np.repeat(left**-0.5, sizes)).astype(np.float32)
    return Batch(words, labels[:-REACH], encoded.properties[offsets], weights, starts)


def fit_network(texts: list[Labelled], words: Counter[str]) -> Network:
    """Train a network with torch, on one thread."""
    import torch
    from torch.nn import functional

    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    rng = np.random.default_rng(SEED)
    known = {word_hash(word) for word, count in words.items() if count > MIN_TEXTS}
    encoded = encode(texts, Features(frozenset(known)))

    def parameter(*shape: int, scale: float) -> torch.nn.Parameter:
        return torch.nn.Parameter(torch.randn(*shape) * scale)

    embedding = parameter(BUCKETS, DIMENSIONS, scale=0.3)
    inputs = [DIMENSIONS, *[HIDDEN] * (len(DILATIONS) - 1)]
    layers = [
        (parameter(3, size, HIDDEN, scale=(2 / 3 / size) ** 0.5), parameter(HIDDEN, scale=0.0))
        for size in inputs
    ]
    scores = parameter(HIDDEN, len(LABELS), scale=HIDDEN**-0.5)
    bias = parameter(len(LABELS), scale=0.0)

    def loss_of(batch: Batch) -> torch.Tensor:
        vectors = functional.embedding_bag(
            torch.from_numpy(batch.properties),
            embedding,
            torch.from_numpy(batch.starts),
            mode="sum",
            per_sample_weights=torch.from_numpy(batch.weights),
        )
        hidden = vectors[torch.from_numpy(batch.words)]
        for number, dilation in enumerate(DILATIONS):
            weights, added = layers[number]
            size = len(hidden) - 2 * dilation
            windows = [hidden[step * dilation : step * dilation + size] for step in range(3)]
            joined = torch.cat(windows, dim=1) @ weights.reshape(-1, HIDDEN) + added
            output = functional.dropout(functional.relu(joined), DROPPED)
            hidden = windows[1] + output if number else output
        logits = hidden @ scores + bias
        return functional.cross_entropy(logits, torch.from_numpy(batch.labels))

    parameters = [embedding, *chain(*layers), scores, bias]
    optimizer = torch.optim.Adam(parameters, lr=RATE)
    tokens = sum(len(ids) + REACH for ids, _ in encoded.sequences)
    steps = EPOCHS * (tokens // BATCH + 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: max(0.0, min(1.0, step / 100, (steps - step) / steps * 1.25))
    )
    for epoch in range(EPOCHS):
        losses = []
        for batch in batches(encoded, rng):
            loss = loss_of(batch)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            losses.append(float(loss.detach()))
        seconds = time.process_time()
        print(f"epoch {epoch + 1}: {np.mean(losses):.4f}, {seconds:.0f} s", flush=True)
    hashes = {word_hash(word) for word, count in words.items() if count >= MIN_TEXTS}
    return Network(
        embedding=embedding.detach().numpy(),
        layers=tuple((first.detach().numpy(), second.detach().numpy()) for first, second in layers),
        scores=scores.detach().numpy(),
        bias=bias.detach().numpy(),
        vocabulary=np.array(sorted(hashes), np.uint32),
    )


@dataclass(frozen=True)
class Case:
    """A text of the measurement: offsets of names, and the group that intervals resample."""

    text: str
    names: tuple[tuple[int, int], ...]
    group: str


def sentence_frames() -> Iterator[tuple[str, Case]]:
    """Yield the sentence frames of the tests, filled with names that are never trained on."""
    for measure, kinds in frames.KINDS.items():
        for kind in kinds:
            for text, names in frames.cases(measure, kind, names=NAMES_PER_FRAME):
                group = frame_of(text, names)
                yield f"frames: {measure}", Case(text, tuple(names), group)
                if kind == "unlisted" and measure == "last":
                    yield "frames: last, unlisted", Case(text, tuple(names), group)


def frame_of(text: str, names: list[tuple[int, int]]) -> str:
    """Return a text without its names: its frame."""
    parts = [text[end:start] for (_, end), (start, _) in pairwise([(0, 0), *names, (-1, -1)])]
    return " ".join(parts)


def annotated(data: Path) -> Iterator[tuple[str, Case]]:
    """Yield texts of sets with annotated names."""
    for labelled in train_bundled.asq(data, 1):
        names = tuple((span.start, span.end) for span in labelled.spans)
        yield "ASQ-PHI, unread half", Case(labelled.text, names, labelled.text)
    packed = (data / "phi" / "presidio_synth_v2.json.gz").read_bytes()
    for number, case in enumerate(json.loads(gzip.decompress(packed))):
        persons = tuple(
            (span["start_position"], span["end_position"])
            for span in case["spans"]
            if span["entity_type"] == "PERSON"
        )
        yield "Presidio, persons", Case(case["full_text"], persons, str(number))


def actors(data: Path) -> Iterator[tuple[str, Case]]:
    """Yield biographies with the words of their subject's name."""
    for row in table(data / "people" / "actors.csv.gz"):
        if part(row["id"], 5) and not is_trained(row["id"]):
            words = {word for word in re.findall(r"[^\W\d_]{2,}", row["name"]) if word[0].isupper()}
            pattern = rf"\b(?:{'|'.join(map(re.escape, words)) or '(?!)'})\b"
            names = tuple(match.span() for match in re.finditer(pattern, row["text"]))
            yield "actors", Case(row["text"], names, row["id"])


def public_cases(data: Path) -> Iterator[tuple[str, Case]]:
    """Yield public texts that are not trained on, with the names that the model finds."""
    for number, text in enumerate(mtsamples(data, (4,))[::2]):
        names = tuple((span.start, span.end) for span in model_names(text))
        yield "MTSamples, model's names", Case(text, names, str(number))
    for number, text in enumerate(wikipedia(data, trained=False)[:MEASURED_SENTENCES]):
        names = tuple((span.start, span.end) for span in model_names(text))
        yield "Wikipedia, model's names", Case(text, names, str(number))


def all_cases(data: Path, folder: Path) -> list[tuple[str, Case]]:
    """Return the texts of the measurement; the model of the extra labels them only once."""
    path = folder / "cases.json"
    if not path.exists():
        cases = [*sentence_frames(), *annotated(data), *actors(data), *public_cases(data)]
        cases += [("lines without a name", Case(line, (), line)) for line in frames.lines("none")]
        rows = [(of_set, case.text, case.names, case.group) for of_set, case in cases]
        path.write_text(json.dumps(rows), encoding="utf-8")
    return [
        (of_set, Case(text, tuple((start, end) for start, end in names), group))
        for of_set, text, names, group in json.loads(path.read_text(encoding="utf-8"))
    ]


@dataclass(frozen=True)
class ReplacedTagger(TaggerDetector):
    """The detector of the package with another tagger."""

    other: Tagger | None = None

    def tagger(self) -> Tagger:
        """Return the other tagger."""
        return super().tagger() if self.other is None else self.other


def finder_of(folder: Path, name: str, *, rules: bool) -> Finder:
    """Return a finder with one of the taggers, with or without the rules of names."""
    if name == "bundled":
        tagger = Tagger(own_tagger())
    elif name.startswith("crf"):
        tagger = Tagger(load_tagger(folder / f"{name}.npz"))
    else:
        network = read_network(folder / f"{name}.npz")
        tagger = NeuralTagger(network, own_tagger().threshold)
    detector = ReplacedTagger(other=tagger)
    others = (other for other in DETECTORS if not isinstance(other, TaggerDetector))
    kept = [other for other in others if rules or other.name != "names"]
    return Finder([*kept, detector], propagate="patient")


def measure(data: Path, folder: Path, name: str, *, rules: bool) -> None:
    """Write the counts of one tagger: per set and group, names, names found, false spans."""
    finder = finder_of(folder, name, rules=rules)
    notes = [row["transcription"] for row in table(data / "notes" / "mtsamples.csv.gz")][1::3]
    finder.find("Seen by Dr. Ruth Okafor on 3/4/2019 with gout.", "p")
    began = time.process_time()
    for note in notes[:SPEED_NOTES]:
        finder.find(note, "p")
    speed = SPEED_NOTES / (time.process_time() - began)
    counts: dict[str, dict[str, list[int]]] = {}
    for of_set, case in all_cases(data, folder):
        spans = [span for span in finder.find(case.text, "p") if span.label != "DATE"]
        covered = {at for span in spans for at in range(span.start, span.end)}
        gold = {at for start, end in case.names for at in range(start, end)}
        row = counts.setdefault(of_set, {}).setdefault(case.group, [0, 0, 0, 0])
        row[0] += len(case.names)
        row[1] += sum(
            covered.issuperset(at for at in range(*offsets) if case.text[at].isalpha())
            for offsets in case.names
        )
        row[2] += sum(
            span.label == "NAME" and gold.isdisjoint(range(span.start, span.end)) for span in spans
        )
        row[3] += 1
    result = {"speed": speed, "counts": counts}
    path = folder / f"counts-{name}-{'rules' if rules else 'alone'}.json"
    path.write_text(json.dumps(result), encoding="utf-8")
    print(f"{name}, rules {rules}: {speed:.0f} notes/s on first sight", flush=True)


def report(folder: Path) -> None:
    """Print recall and false names per set, with the difference from the bundled model."""
    rng = np.random.default_rng(SEED)
    for rules in ("rules", "alone"):
        paths = sorted(folder.glob(f"counts-*-{rules}.json"))
        results = {path.stem.split("-", 1)[1]: json.loads(path.read_text()) for path in paths}
        if f"bundled-{rules}" not in results:
            continue
        first = results[f"bundled-{rules}"]
        for of_set in first["counts"]:
            print(f"\n{of_set} ({rules})")
            base = np.array(list(first["counts"][of_set].values()))
            chosen = rng.integers(len(base), size=(2000, len(base)))
            for name, result in results.items():
                rows = np.array(list(result["counts"][of_set].values()))
                print(f"  {name:18} {_line(rows, base, chosen)}")
        for name, result in results.items():
            print(f"  {name:18} {result['speed']:.0f} notes/s")


def _line(rows: Ints, base: Ints, chosen: Ints) -> str:
    """Return recall, notes with a miss and false names, each with its paired difference."""
    parts = []
    leaky = (rows[:, 1] < rows[:, 0]).astype(int)
    base_leaky = (base[:, 1] < base[:, 0]).astype(int)
    measures = (
        ("recall", rows[:, 1], base[:, 1], rows[:, 0]),
        ("with a miss", leaky, base_leaky, np.ones_like(leaky)),
        ("false", rows[:, 2], base[:, 2], np.ones_like(leaky)),
    )
    for title, values, others, sizes in measures:
        if not sizes.sum():
            continue
        divisor = 1 if title == "false" else sizes[chosen].sum(axis=1)
        differences = (values - others)[chosen].sum(axis=1) / divisor
        low, high = np.quantile(differences, (0.025, 0.975))
        share = values.sum() if title == "false" else values.sum() / sizes.sum()
        low_share, high_share = np.quantile(values[chosen].sum(axis=1) / divisor, (0.025, 0.975))
        parts.append(
            f"{title} {share:.4g} ({low_share:.4g} to {high_share:.4g}; {low:+.4g} to {high:+.4g})"
        )
    return ", ".join(parts)


def _write(path: Path, texts: list[Labelled]) -> None:
    rows = [(text.text, [(span.start, span.end) for span in text.spans]) for text in texts]
    path.write_text(json.dumps(rows), encoding="utf-8")


def _read(path: Path) -> list[Labelled]:
    return [
        Labelled(text, tuple(Span(start, end, "NAME") for start, end in spans))
        for text, spans in json.loads(path.read_text(encoding="utf-8"))
    ]


def main() -> None:
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("step", choices=["texts", "crf", "neural", "measure", "report"])
    parser.add_argument("--tagger", default="bundled", help="bundled, crf-a, neural-b and so on")
    parser.add_argument("--without-rules", action="store_true")
    parser.add_argument("--version", choices=["a", "b"], default="b")
    asked = parser.parse_args()
    if asked.step == "texts":
        make_texts(asked.data, asked.folder)
    elif asked.step == "crf":
        train_crf(asked.data, asked.folder, asked.version)
    elif asked.step == "neural":
        train_neural(asked.data, asked.folder, asked.version)
    elif asked.step == "measure":
        measure(asked.data, asked.folder, asked.tagger, rules=not asked.without_rules)
    else:
        report(asked.folder)


if __name__ == "__main__":
    main()
