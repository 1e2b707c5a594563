"""Language models of notes: vocabularies, a unigram, an n-gram, an LSTM and a small GPT; training and sampling.

Text is in MedText's form everywhere (`corpus.medtext`): one sentence a line, one space between tokens.
"""
