import sys
from pathlib import Path

# What the tests of this folder share: the straight-line engine and the plain view fan.
sys.path.insert(0, str(Path(__file__).parent / "helpers"))
