"""Word lists: names with frequencies, eponyms, clinical and common words, places. Loaded when first asked for."""
