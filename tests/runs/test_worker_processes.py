"""What worker processes know and load."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from small import KBC

EXAMPLES = Path(__file__).parents[2] / "examples"


def python(code, *arguments):
    told = [sys.executable, "-c", dedent(code), *map(str, arguments)]
    return subprocess.run(told, capture_output=True, text=True, check=False)


def test_workers_know_what_was_registered_in_the_parent(tmp_path):
    code = """
        import sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[1])

        if __name__ == "__main__":
            from fishery.scenario import SCENARIO
            from llm_coop_envs.runs.runner import run_study
            from llm_coop_envs.studies.study import parse_study
            from llm_coop_envs.core.registry import register

            register(SCENARIO)
            study = parse_study((Path(sys.argv[1]) / "fishery" / "study.yaml").read_text(), "study.yaml")
            outcome = run_study(study, Path(sys.argv[2]), workers=2)
            assert outcome.complete
            print(outcome.finished)
        """
    script = tmp_path / "play.py"
    script.write_text(dedent(code))
    found = subprocess.run(
        [sys.executable, script, EXAMPLES, tmp_path / "run"], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) > 1


def test_a_run_of_rules_loads_nothing_of_language_models_but_the_readers_of_what_was_said(tmp_path):
    (tmp_path / "small.yaml").write_text(KBC)
    code = """
        import sys
        from llm_coop_envs.cli.main import app

        try:
            app(["run", sys.argv[1], "-o", sys.argv[2], "--workers", "1"])
        except SystemExit as left:
            assert not left.code, left.code
        models = {name for name in sys.modules if name.startswith("llm_coop_envs.policies.llm.")}
        models = {name for name in models if ".parsing" not in name}
        print(sorted(name for name in models if not name.endswith((".playing", ".answer_readers", ".move_readers"))))
        """
    found = python(code, tmp_path / "small.yaml", tmp_path / "run")
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-1] == "[]"
