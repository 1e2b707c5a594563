"""Word-pair lists: the published layouts, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from clinveil.core import InputError
from clinveil.utility import read_pairs

SIZES = {
    "hliaoutakis34": 34,
    "hliaoutakis36": 36,
    "mayosrs": 101,
    "minimayosrs": 29,
    "pedersen30": 30,
}
SIZES |= {
    "umnsrs_rel": 587,
    "umnsrs_rel_mod": 458,
    "umnsrs_sim": 566,
    "umnsrs_sim_mod": 449,
    "wordsim353": 353,
}


def written(tmp_path, text, name="pairs.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    "text",
    [
        "term1,term2,score\nheart,liver,2.5\nlung,kidney,1\n",
        "score,cui1,term2,term1\n2.5,C1,liver,heart\n1,C2,kidney,lung\n",
        "Mean\tStdev\tTerm1\tTerm2\tCUI1\tCUI2\n2.5\t1\theart\tliver\tC1\tC2\n1\t1\tlung\tkidney\tC3\tC4\n",
        "Mean,CUI1,CUI2,TERM1,TERM2\n2.5,C1,C2,heart,liver\n1,C1,C2,lung,kidney\n",
        "Physicians,Coders,CUI1,CUI2,TERM1,TERM2\n2,3,C1,C2,heart,liver\n1,1,C1,C2,lung,kidney\n",
        "Word 1,Word 2,Human (mean)\nheart,liver,2.5\nlung,kidney,1\n",
        "heart,liver,2.5\nlung,kidney,1\n",
        "one,other,how alike\nheart,liver,2.5\n\nlung,kidney,1\n",
        "\ufeffterm1;term2;score\r\nheart;liver;2.5\r\nlung;kidney;1\r\n",
    ],
)
def test_layouts(tmp_path, text):
    pairs = read_pairs(written(tmp_path, text))
    assert pairs.terms == (("heart", "liver"), ("lung", "kidney"))
    assert pairs.scores.tolist() == [2.5, 1.0]
    assert pairs.name == "pairs"


def test_quoted_terms_and_unicode(tmp_path):
    pairs = read_pairs(written(tmp_path, 'term1,term2,score\n"fever, high",Sjögren,3\n'))
    assert pairs.terms == (("fever, high", "Sjögren"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no row"),
        ("term1,term2,cui\na,b,c\n", "no column of scores"),
        ("a,b\nc,d\n", "no columns term1"),
        ("term1,term2,score\n", "no pair below its header"),
        ("term1,term2,score\na, \u00a0,1\n", "row 2 lacks a term"),
        ("term1,term2,score\na,b,inf\n", "row 2: the score is not a number"),
        ("term1,term2,score\na,b,high\n", "row 2: the score is not a number"),
        ("term1,term2,score\na,b,1\na,b,nan\n", "row 3: the score is not a number"),
        ("term1,term2,score\na,,1\n", "row 2 lacks a term"),
        ("term1,term2,score\na,b\n", "row 2 has 2 columns"),
        ("term1,term2,physicians,coders\na,b,1,\n", "row 2: the score is not a number"),
    ],
)
def test_bad_tables_are_refused_with_file_and_row(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read_pairs(written(tmp_path, text))
    assert "pairs.csv" in str(caught.value)
    assert caught.value.exit_code == 3


def test_no_table_at_all(tmp_path):
    with pytest.raises(InputError, match="not a table"):
        read_pairs(tmp_path / "missing.csv")
    with pytest.raises(InputError, match="not a table"):
        read_pairs(written(tmp_path, "term1,term2,score\nñ,b,1\n", encoding="latin-1"))
    with pytest.raises(InputError, match="not a table"):
        read_pairs(written(tmp_path, 'term1,term2,score\n"a,b,1\n'))


@pytest.mark.real
@pytest.mark.parametrize("name", SIZES)
def test_published_lists(real_data, name):
    pairs = read_pairs(real_data(f"wordpairs/{name}.csv"))
    assert len(pairs) == SIZES[name]
    assert np.isfinite(pairs.scores).all()


def test_names_of_files_become_names_of_lists(tmp_path):
    row = "a,b,1\n"
    assert read_pairs(written(tmp_path, row, "no suffix")).name == "no-suffix"
    assert read_pairs(written(tmp_path, row, "UMNSRS_relatedness.csv")).name == "umnsrs_relatedness"
