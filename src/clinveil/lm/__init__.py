"""Language models of notes: vocabularies, a unigram, an n-gram, an LSTM and public models; training
and sampling.

All text is in MedText's form (`corpus.medtext`): one sentence per line, one space between tokens.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
