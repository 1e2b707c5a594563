"""Who makes the notes of a release: the channel, or a language model."""
