"""One kind of identifier a file."""
