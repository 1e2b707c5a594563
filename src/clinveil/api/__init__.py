"""What `clinveil.` offers: verbs, two transformers, attacks and evaluations on files, frames and lists of strings."""
