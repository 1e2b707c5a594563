"""The tagger: a linear-chain CRF over the tokens of a note, trained here, run by a compiled loop, kept as arrays.

`tokens` cuts, `features` says what is known of one token, `train` fits (python-crfsuite), `model` is the file,
`tag` computes the chances and makes spans of them, `recipe` is how the model in this package was made.
"""
