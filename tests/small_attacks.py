"""Attacks of a release use little text; tests that are about an attack give it more. Imported for
its effect.
"""

from clinveil.attacks.adversaries import own_vectors
from clinveil.attacks.channel import adversary_suite

own_vectors.WORK = 1
own_vectors.WINDOW = 5
adversary_suite.IN_A_RELEASE = 2_500
adversary_suite.CONTROLLED = 1_000
adversary_suite.PROVED = 500
