"""What paper A printed (JAMIA 2020): the numbers that ours are set beside."""

from __future__ import annotations

# Table 3: Pearson correlation, mean of five runs with 90 % interval; CBOW on 949,782,513 tokens of consultation notes.
TABLE_3 = {
    "Pedersen": {"0": "0.61", "3": "0.54 (0.51 to 0.56)", "5": "0.64 (0.62 to 0.65)", "7": "0.62 (0.61 to 0.63)"},
    "Hliaoutakis": {"0": "0.28", "3": "0.26 (0.19 to 0.32)", "5": "0.26 (0.24 to 0.27)", "7": "0.24 (0.19 to 0.29)"},
    "MayoSRS": {"0": "0.39", "3": "0.38 (0.37 to 0.39)", "5": "0.39 (0.39 to 0.40)", "7": "0.39 (0.38 to 0.40)"},
    "UMNSRS": {"0": "0.49", "3": "0.49 (0.48 to 0.49)", "5": "0.49 (0.49 to 0.49)", "7": "0.48 (0.48 to 0.49)"},
}
LISTS = {"pedersen": "Pedersen", "hliaoutakis": "Hliaoutakis", "mayosrs": "MayoSRS", "umnsrs": "UMNSRS"}
TABLE_2 = (("patients", "542,651"), ("notes", "9,051,707"), ("tokens", "949,782,513"), ("unique tokens", "2,612,592"))
FIGURE_2 = "at most about 5 points of F1 on its clinical tasks (Figure 2; its numbers are not printed)"


def column_of(name: str) -> dict[str, str]:
    """The paper's row of Table 3 for a list of ours, by its name; empty where it has none."""
    found = next((theirs for ours, theirs in LISTS.items() if name.startswith(ours)), None)
    return TABLE_3[found] if found else {}
