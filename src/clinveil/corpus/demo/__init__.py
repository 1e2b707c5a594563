"""The demo corpus: synthetic consultation notes with gold annotations, generated as a stream from a seed.

The templates are in `language/*.toml`. `grammar` compiles and expands them, `notes` composes notes, and `stream`
returns and writes them. Nothing in it comes from a real person's record.
"""

from clinveil.corpus.demo.stream import (
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
    "DemoFiles",
    "demo_chunks",
    "demo_codes",
    "demo_corpus",
    "demo_notes",
    "demo_patients",
    "demo_spans",
    "write_demo",
]
