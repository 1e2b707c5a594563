"""S-PDTP on language models (paper C, section 3.2): who is left out, the models without them, and what that tells.

`exact`: one fixed plan of batches; a left-out unit weighs 0, nothing else changes. `compat`: paper C's code; the notes
are taken out and the text is cut anew, so every batch changes. A unigram needs no training: `attack.pdtp.unigram_pdtp`.
"""
