"""The built front end: made of the sources that are there, small, and without addresses."""

import gzip
import hashlib
import json
import shutil
import subprocess

import pytest
from browser import FRONT

STATIC = FRONT.parent / "static"
NAMES = ("index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts")


def test_the_build_is_of_these_sources():
    """Otherwise: npm ci && npm run build in llm_coop_envs/page/front."""
    found = hashlib.sha256()
    for name in sorted([*NAMES, *(f"src/{path.name}" for path in (FRONT / "src").iterdir())]):
        found.update(f"{name}\n".encode())
        found.update((FRONT / name).read_bytes())
    assert (STATIC / "sources.txt").read_text().strip() == found.hexdigest()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npx") is None, reason="Node is not installed")
@pytest.mark.skipif(not (FRONT / "node_modules").is_dir(), reason="npm ci was not run in llm_coop_envs/page/front")
def test_building_again_gives_the_same_bytes(tmp_path):
    subprocess.run(["npx", "vite", "build", "--outDir", tmp_path], cwd=FRONT, check=True, capture_output=True)
    for path in STATIC.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


def test_it_is_small():
    assert sum(len(gzip.compress(path.read_bytes())) for path in STATIC.iterdir()) <= 150_000


def test_it_names_no_place_to_load_from():
    lock = json.loads((FRONT / "package-lock.json").read_text())
    assert not [name for name, one in lock["packages"].items() if "resolved" in one]
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "sourceMappingURL" not in text
        assert "@import" not in text
        # Names of XML's kinds are no places.
        assert "http" not in text.replace("http://www.w3.org/", "")
