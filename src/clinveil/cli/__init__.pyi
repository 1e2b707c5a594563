from .entry import main as main
from .entry import run as run
