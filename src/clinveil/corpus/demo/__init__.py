"""The demo corpus: invented consultation notes with their truth, made in a stream from a seed.

The language lies in `language/*.toml`; `grammar` compiles and expands it, `notes` composes, `stream` hands the
result out. Nothing in it comes from a real person's record.
"""

from __future__ import annotations

from clinveil.corpus.demo.stream import (
    Chunk,
    DemoFiles,
    demo_chunks,
    demo_codes,
    demo_corpus,
    demo_notes,
    demo_patients,
    demo_spans,
    write_demo,
)

__all__ = [
    "Chunk",
    "DemoFiles",
    "demo_chunks",
    "demo_codes",
    "demo_corpus",
    "demo_notes",
    "demo_patients",
    "demo_spans",
    "write_demo",
]
