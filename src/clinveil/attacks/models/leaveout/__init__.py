"""S-PDTP on language models (paper C, section 3.2): who is left out, the models without them, and what that tells.

`exact`: one fixed plan of batches; a left-out unit weighs 0. Nothing else of the plan changes, but where the gradient
is clipped by its norm over the whole batch, a batch without the unit may be scaled differently for all who are in it.
`compat`: as paper C's code; the notes are taken out and the text is cut anew, so every batch changes. A unigram needs
no training: `attack.pdtp.unigram_pdtp`.
"""
