"""The numbers that paper B prints, as it prints them: Tables 1 to 4, by window 1, 3, 5, 7, 9.

Source: Abdalla M, Abdalla M, Hirst G, Rudzicz F. J Med Internet Res 2020;22(7):e18055.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

WINDOWS = (1, 3, 5, 7, 9)
PATIENTS = 638  # of Table 3

Column = Mapping[int, str]


def _by_window(*values: str) -> Column:
    return MappingProxyType(dict(zip(WINDOWS, values, strict=True)))


# Of the first 600 pairs by cosine those of true names, n (%); only GloVe at window 1 was not significant.
TABLE_1: Mapping[str, Column] = MappingProxyType(
    {
        "skipgram": _by_window("51 (8.5)", "369 (61.5)", "393 (65.6)", "410 (68.3)", "411 (68.5)"),
        "cbow": _by_window("17 (2.8)", "265 (44.2)", "323 (53.8)", "331 (55.2)", "340 (56.7)"),
        "glove": _by_window("8 (1.3), n.s.", "158 (26.3)", "278 (46.3)", "317 (52.8)", "323 (53.8)"),
    }
)
# in-group minus out-group, cityblock; all P < .001 (Wilcoxon).
TABLE_2: Mapping[str, Column] = MappingProxyType(
    {
        "skipgram": _by_window("3.91", "2.88", "2.33", "1.84", "1.51"),
        "cbow": _by_window("7.59", "28.53", "39.55", "47.10", "51.61"),
        "glove": _by_window("4.85", "5.69", "5.45", "5.12", "5.54"),
    }
)
# Patients with a significant difference, n (%) of 638, cityblock.
TABLE_3: Mapping[str, Column] = MappingProxyType(
    {
        "skipgram": _by_window("49 (7.7)", "41 (6.4)", "33 (5.2)", "16 (2.5)", "12 (1.9)"),
        "cbow": _by_window("77 (12.1)", "149 (23.4)", "152 (23.8)", "153 (24.0)", "153 (24.0)"),
        "glove": _by_window("400 (62.7)", "401 (62.8)", "403 (63.2)", "380 (59.6)", "449 (70.4)"),
    }
)
# Per cent of 1,000 draws of 30 diagnoses in which the attack beats the majority baseline, A@1 and A@5.
TABLE_4: Mapping[str, Mapping[str, Column]] = MappingProxyType(
    {
        "A@1": {
            "skipgram": _by_window("55.8", "55.6", "57.4", "57.4", "57.2"),
            "cbow": _by_window("61.8", "51.2", "53.6", "54.6", "53.7"),
            "glove": _by_window("55.4", "60.5", "59.4", "55.9", "60.6"),
        },
        "A@5": {
            "skipgram": _by_window("56.7", "53.1", "55.6", "53.5", "53.2"),
            "cbow": _by_window("61.8", "52.6", "54.5", "53.9", "51.2"),
            "glove": _by_window("56.9", "59.5", "57.2", "54.0", "56.7"),
        },
    }
)
# The text's own sums: of all patients, names reconstructed, and names with a diagnosis right.
CHAIN = "0.6 % of patients; 0.02 to 0.15 %"


def number(said: str) -> float:
    """The figure of a printed cell: the per cent in brackets, else its first number."""
    inner = said.partition("(")[2].partition(")")[0]
    return float(inner or said.split(",")[0])
