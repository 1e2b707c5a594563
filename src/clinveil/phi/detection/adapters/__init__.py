"""Adapters of identifier detectors from other libraries, one per file. Each needs an optional extra
and works offline.
"""

from __future__ import annotations

from clinveil.phi.detection.adapter import Adapter
from clinveil.phi.detection.adapters.huggingface import HUGGINGFACE
from clinveil.phi.detection.adapters.presidio import PRESIDIO

ADAPTERS: tuple[Adapter, ...] = (HUGGINGFACE, PRESIDIO)
