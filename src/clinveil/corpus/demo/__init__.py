"""The demo corpus: synthetic consultation notes with gold annotations, generated as a stream from a seed.

The templates are in `language/*.toml`. `grammar` compiles and expands them, `notes` composes notes, and `stream`
returns and writes them. Nothing in it comes from a real person's record.
"""

from clinveil.corpus.demo.stream import DemoFiles as DemoFiles
from clinveil.corpus.demo.stream import demo_chunks as demo_chunks
from clinveil.corpus.demo.stream import demo_codes as demo_codes
from clinveil.corpus.demo.stream import demo_corpus as demo_corpus
from clinveil.corpus.demo.stream import demo_notes as demo_notes
from clinveil.corpus.demo.stream import demo_patients as demo_patients
from clinveil.corpus.demo.stream import demo_spans as demo_spans
from clinveil.corpus.demo.stream import write_demo as write_demo
