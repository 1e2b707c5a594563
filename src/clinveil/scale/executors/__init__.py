"""The executors, one a file."""
