"""Paper C (ClinicalNLP 2019): notes sampled from a language model, how private they are and what they are good for."""
