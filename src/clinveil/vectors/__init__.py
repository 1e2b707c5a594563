"""Word vectors: training, files, and the neighbour table made from them."""
