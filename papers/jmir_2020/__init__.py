"""Paper B (JMIR 2020): what word vectors trained on notes with missed names disclose."""
