"""What `inspect` counts, against a reader's own sums and against plain loops."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.cli import main
from clinveil.core import words
from clinveil.corpus import inspect, memory_corpus, open_corpus
from clinveil.vectors.settings import FEWEST_PASSES, MOST_PASSES, TRAINING_WORDS, passes


def test_the_sum_of_a_corpus_that_a_reader_can_do() -> None:
    corpus = memory_corpus(
        [
            ("1", "p", "Pain, pain!"),
            ("2", "p", "Pain, pain!"),  # exact duplicate
            ("3", "q", "PAIN pain 5"),
            ("4", "q", None),
            ("5", "r", ""),
            ("6", "r", "12 / 80"),  # no word
            ("7", "s", "12 / 81"),
            ("8", "t", "cough"),
            ("9", "u", "pain"),
            ("10", "v", "pain"),  # exact duplicate
            ("11", "w", "pain"),  # exact duplicate
        ]
    )
    found = inspect(corpus)
    assert (found.rows, found.patients) == (11, 8)
    assert (found.null, found.empty, found.wordless) == (1, 1, 2)
    assert found.words == 10
    assert (found.types, found.rare_types) == (2, 1)  # pain: p q u v w; cough: t
    assert found.exact_duplicates == 3
    assert (found.guessed, found.preset) == ((), None)


@settings(max_examples=50, deadline=None, database=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.none() | st.text(st.sampled_from("ab é9."), max_size=6)),
        min_size=1,
    )
)
def test_counts_are_those_of_a_plain_loop(data: list[tuple[int, str | None]]) -> None:
    found = inspect(memory_corpus([(str(i), f"p{p}", text) for i, (p, text) in enumerate(data)]))
    users: dict[str, set[int]] = defaultdict(set)
    for patient, text in data:
        for word in words(text or ""):
            users[word].add(patient)
    texts = [text for _, text in data if text]
    assert found.patients == len({p for p, _ in data})
    assert (found.types, found.rare_types) == (len(users), sum(len(u) < 5 for u in users.values()))
    assert found.exact_duplicates == len(texts) - len(set(texts))


def test_few_words_get_more_passes_within_bounds() -> None:
    assert (passes(0), passes(1), passes(10**12)) == (MOST_PASSES, MOST_PASSES, FEWEST_PASSES)
    sizes = [2**n for n in range(40)]
    taken = [passes(size) for size in sizes]
    assert taken == sorted(taken, reverse=True)
    between = [
        (n, size) for n, size in zip(taken, sizes, strict=True) if FEWEST_PASSES < n < MOST_PASSES
    ]
    assert between and all(
        TRAINING_WORDS <= n * size < TRAINING_WORDS + size for n, size in between
    )


# --- the command
# ---------------------------------------------------------------------------------------


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "zoo.csv"
    path.write_text(
        'doc_id,note,"[bold]kind",ward\n1,zyzzyva xylograph,k,w\n2,zyzzyva,k,w\n3,,k,w\n'
    )
    return path


def test_the_command_prints_a_table_and_writes_nothing(
    notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(notes.parent.iterdir())
    assert main(["inspect", str(notes), "--set", "label=[bold]kind"]) == 0
    out, err = capsys.readouterr()
    assert sorted(notes.parent.iterdir()) == before
    table = {line.split("  ")[0]: line for line in out.splitlines() if line.strip()}
    assert table["notes"].split()[1] == "3"
    assert table["rare words"].split()[2] == "2"
    assert "[bold]kind" in table["kept"], "a column name is not taken for markup"
    assert "ward" in table["dropped"]
    assert "guessed" in table["text"]
    assert "each note counts as its own patient" in err
    assert "zyzzyva" not in out + err


def test_the_command_writes_findings_to_stdout(
    notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(notes), "--set", "label=[bold]kind", "--json", "-"]) == 0
    out, _ = capsys.readouterr()
    document = json.loads(out)
    assert document["schema"] == "clinveil.findings/2"
    values = {f["measure"]: f["value"] for f in document["findings"]}
    assert values["corpus.rows"] == 3
    assert values["corpus.null"] == 1
    assert values["corpus.types"] == values["corpus.rare_types"] == 2
    [rows] = [f for f in document["findings"] if f["measure"] == "corpus.rows"]
    assert {"text: note", "guessed: text, id", "dropped: ward"} <= {*rows["labels"]}
    assert "zyzzyva" not in out


def test_the_command_refuses_in_one_line(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes.write_text(notes.read_text() + '4,"zyzzyva,k,w\n')
    assert main(["inspect", str(notes)]) == 3
    _, err = capsys.readouterr()
    assert err.splitlines()[-1] == "clinveil: zoo.csv, row 4: a quote is never closed (close it)"
    assert "zyzzyva" not in err
    assert main(["inspect", str(notes), "--text", "story"]) == 3
    assert main(["inspect", str(notes), "--set", "notes.encoding=nonsense"]) == 2
    assert main(["inspect", str(notes.parent / "gone.csv")]) == 3


def test_real_notes(real_data: Callable[[str], Path]) -> None:
    corpus = open_corpus(real_data("notes/mtsamples.csv.gz"), label=("doc_type",))
    found = inspect(corpus)
    texts = [t for batch in corpus.batches() for t in batch.column(2).to_pylist()]
    assert found.rows == found.patients == len(texts) == 1796
    assert found.words == sum(len(words(t)) for t in texts)
    users = Counter(word for text in texts for word in set(words(text)))
    assert found.types == len(users)
    assert found.rare_types == sum(n < 5 for n in users.values())
    assert found.exact_duplicates == len(texts) - len(set(texts))
