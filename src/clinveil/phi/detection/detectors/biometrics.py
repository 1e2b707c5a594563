"""Biometric identifiers and full-face photographs, if the note contains their number or file
name.
"""

from __future__ import annotations

import re

from clinveil.phi.detection.detector import Rule, RuleDetector
from clinveil.phi.matching.matcher import FAR, Anchor

_PRINT = re.compile(
    r"(?<![a-z])(?P<phi>(?:(?:finger|thumb|palm|voice|foot|face)\s?prints?|(?:iris|retinal?|facial"
    r"|face|palm|vein|dna|voice"
    r"|fingerprint|biometric)\s(?:scan|template|recognition|profile|id))(?:\s+(?:id|no\.?|number"
    r"|file|#))?[\s:#]+"
    r"[A-Z]{0,4}[-_]?\d{3,}(?:-\d+)*)",
    re.IGNORECASE,
)
_PICTURE = re.compile(
    r"(?P<phi>(?:(?<![a-z])(?:full[- ]face|facial|face|portrait|patient)\s)?(?:(?:photograph|photo"
    r"|picture|portrait|image)\s)?"
    r"[\w-]+\.(?:jpe?g|png|tiff?|heic|bmp|gif|mp4|mov|avi|dcm))(?![a-z\d])",
    re.IGNORECASE,
)
RULES = (
    Rule(
        "BIOMETRIC",
        _PRINT,
        "Identity was confirmed by {fingerprint FP-88810}.",
        anchor=Anchor(
            "*print* biometric dna face facial iris palm retinal retina vein voice",
            within=13,
            first="[A-Za-z]",
            after="[^A-Za-z]",
        ),
    ),
    Rule(
        "PHOTO",
        _PICTURE,
        "A {facial photograph DSC09735.JPG} was taken.",
        anchor=Anchor(
            "avi* bmp* dcm* gif* heic* jpeg* jpg* mov* mp png* tif*", within=FAR, first=r"[\w-]"
        ),
    ),
)
BIOMETRICS = RuleDetector("biometrics", RULES)
