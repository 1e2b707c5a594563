"""Paper B (JMIR 2020;22(7):e18055): what word vectors of notes give away when PHI was removed imperfectly."""
