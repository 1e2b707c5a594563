"""One token mechanism a file."""
