"""Treatment of detected identifiers: policies, surrogates, the vault's records, and the runs over a
corpus.

Nothing is imported here, because settings need the policies only. Public:
`deidentifier.Deidentifier` treats notes; `passes.deidentify_corpus` applies it to a corpus and
`part_passes` to part files; `run` is `clinveil deidentify` and `reidentify` its reversal;
`policy.Policy`; `audit.audit_checks`.
"""
