"""Paper C (ClinicalNLP 2019): privacy and utility of notes sampled from a language model."""
