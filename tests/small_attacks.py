"""Attacks of a release use little text; tests that are about an attack give it more. Imported for its effect."""

from clinveil.attacks.adversaries import decipher, own_vectors
from clinveil.attacks.channel import adversary_suite

own_vectors.WORK, own_vectors.WINDOW = 1, 5
adversary_suite.IN_A_RELEASE, adversary_suite.CONTROLLED, adversary_suite.PROVED = 2_500, 1_000, 500
decipher.WORDS = 2_000
