"""The README's film and the scenarios' pictures are there, small, and drawn by the command."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PICTURES = ROOT / "docs" / "pictures"


def test_the_readme_shows_a_small_film():
    # Addresses in full, so that they hold on a package page too; `test_packaging` finds their files.
    pictures = re.findall(
        r"!\[.+?\]\(https://\S+?/main/(docs/pictures/\S+\.gif)\)", (ROOT / "README.md").read_text(encoding="utf-8")
    )
    assert len(pictures) == 1
    for path in {*map(Path, pictures), *(path.relative_to(ROOT) for path in PICTURES.iterdir())}:
        assert (ROOT / path).stat().st_size < (500_000 if path.suffix == ".gif" else 150_000)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pygame") is None, reason="the extra 'render' is not installed")
def test_the_command_draws_them(tmp_path, monkeypatch, capsys):
    from llm_coop_envs.benchmarks.doc_pages import readme_pictures

    monkeypatch.setattr("sys.argv", ["readme_pictures", "--folder", str(tmp_path)])
    readme_pictures.main()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in PICTURES.iterdir())
    assert capsys.readouterr().out.count("kB") == 4
