"""The package's version and the folder it lies in, for every room: none of them imports the whole package."""

from pathlib import Path

__version__ = "1.0.0"

PACKAGE_FOLDER = Path(__file__).parent
