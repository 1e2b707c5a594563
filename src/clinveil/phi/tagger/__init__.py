"""The tagger: a linear-chain CRF over the tokens of a note, stored as plain arrays and decoded by a
compiled loop.

`tokens` splits text, `features` describes one token, `model` reads and writes the file, and `tag`
computes probabilities and spans. The package in `training/` of the repository fits the weights.
"""
