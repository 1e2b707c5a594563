"""How word vectors are trained: one algorithm a file."""
