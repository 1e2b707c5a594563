"""Names of people: cues, word lists, and how far a name extends; the detector is
`detectors/names.py`.
"""
