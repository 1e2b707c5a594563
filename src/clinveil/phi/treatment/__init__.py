"""Treatment of detected identifiers: policies, surrogates, the vault's records, and the runs over a corpus.

`deidentifier.Deidentifier` treats notes; `passes` applies it to a corpus and `run` is `clinveil deidentify`.
"""
