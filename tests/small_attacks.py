"""Attacks of a release use little text; tests that are about an attack give it more. Imported for its effect."""

from clinveil.attacks.adversaries import _shadow
from clinveil.attacks.adversaries.decipher import Decipher
from clinveil.attacks.channel import adversary_suite

_shadow.WORK, _shadow.WINDOW = 1, 5
adversary_suite.IN_A_RELEASE, adversary_suite.CONTROLLED, adversary_suite.PROVED = 2_500, 1_000, 500
Decipher.in_release = tuple({**flags, "words": 2_000} for flags in Decipher.in_release)
