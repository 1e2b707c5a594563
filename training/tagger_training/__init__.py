"""Train taggers of names: generated texts, the fit with python-crfsuite, and training on your own
annotated notes.
"""
