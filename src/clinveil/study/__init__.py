"""Studies that reproduce the tables of the three papers on the user's notes, one folder per
paper.
"""
