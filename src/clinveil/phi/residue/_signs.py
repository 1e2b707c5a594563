"""The type of a shape, and the signs that are read alike."""

from __future__ import annotations

Shape = tuple[int, int, str]
"""Start and end in the text, and the label that fits."""
# One character for one, so that offsets stay: dashes, slashes, spaces and characters without a
# width.
SIGNS = {ord(sign): "-" for sign in "‐‑‒–—―−﹣－"} | {ord(sign): "/" for sign in "∕⁄⧸／"}
SIGNS |= {ord(sign): "'" for sign in "’‘ʼ＇"} | {
    ord(sign): " " for sign in "\u00a0\u2007\u2009\u202f\u3000"
}
SIGNS |= {ord(sign): "_" for sign in "\u00ad\u200b\u200c\u200d\u2060\ufeff"} | {
    0xFF20: "@",
    0xFF0E: ".",
    0xFF1A: ":",
}
