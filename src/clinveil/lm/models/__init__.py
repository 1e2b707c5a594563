"""The kinds of language models, one a file: each registers itself, with its sizes and what a card says of it."""
