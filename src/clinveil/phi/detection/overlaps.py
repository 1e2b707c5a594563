"""Resolution of overlapping spans.

Spans that share a character become one span that covers them all, so that no part of an identifier remains. Its label
is that of the longest span, then of the one with the highest score. A name that ends inside a word or before a
hyphenated part is extended to the end of the word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from clinveil.core.spans import Span


def resolve(text: str, spans: Iterable[Span], kept: Collection[str] = ()) -> list[Span]:
    """Return sorted spans without overlaps that cover every character of the given ones, in any input order.

    Args:
        kept: labels that the policy keeps unchanged. A span of any other label that overlaps one of them wins, so that
            no name is kept because it may also be a town.
    """
    return united((_to_word_edges(text, span) if span.label == "NAME" else span for span in spans), kept)


def united(spans: Iterable[Span], kept: Collection[str] = ()) -> list[Span]:
    """Return sorted spans with overlapping ones merged; the input order has no effect."""
    return [_union(cluster, kept) for cluster in _clusters(sorted(spans))]


def _clusters(spans: list[Span]) -> list[list[Span]]:
    """Return the runs of sorted spans in which each span overlaps an earlier one."""
    clusters, reach = list[list[Span]](), 0
    for span in spans:
        if span.start >= reach or not clusters:
            clusters.append([])
        clusters[-1].append(span)
        reach = max(reach, span.end)
    return clusters


def _union(spans: list[Span], kept: Collection[str]) -> Span:
    if len(spans) == 1:
        return spans[0]
    winner = max(spans, key=lambda s: (s.label not in kept, s.end - s.start, s.score, s.label, s.detector))
    return winner.over(spans[0].start, max(s.end for s in spans))


def _to_word_edges(text: str, span: Span) -> Span:
    """Extend a name to the boundaries of its words, including hyphenated parts but not a possessive ending."""
    start, end = span.start, span.end
    while start > 0 and text[start - 1].isalpha() and text[start].isalpha():
        start -= 1
    while end < len(text) and _continues_word(text, end):
        end += 1
    return span if (start, end) == (span.start, span.end) else span.over(start, end)


def _continues_word(text: str, end: int) -> bool:
    """Whether the character at `end` belongs to the word before it."""
    if text[end].isalpha():
        return text[end - 1].isalpha() or text[end - 1] == "-"
    return text[end] == "-" and text[end - 1].isalpha() and text[end + 1 : end + 2].isalpha()
