"""Earlier releases: the ledger of all, the vault of one, and the series that new notes are added
to.
"""
