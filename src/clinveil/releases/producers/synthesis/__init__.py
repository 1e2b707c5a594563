"""Synthetic notes: train a language model on notes, write new ones under a secret key, and look before they leave."""
