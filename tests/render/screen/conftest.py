"""Pictures need pygame, an extra; without it their tests are not collected."""

from importlib.util import find_spec

if find_spec("pygame") is None:
    collect_ignore_glob = ["test_*.py"]
