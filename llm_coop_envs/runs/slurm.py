"""Play a run as a SLURM job array: each task of the array plays a part of it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.files import write_whole

SCRIPT = Path("slurm", "parts.sh")
# A minute before the time limit a part stops as after Ctrl-C: it finishes what is under way, and begins nothing more.
_SCRIPT = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --array=0-{last}
#SBATCH --chdir={here}
#SBATCH --output={logs}/%A_%a.log
#SBATCH --signal=B:INT@60
#SBATCH --requeue
#SBATCH --open-mode=append
{more}exec {command} --part "slurm-$SLURM_ARRAY_TASK_ID"
"""


def check_options(options: Sequence[str]) -> None:
    """Check that options look like those of sbatch, such as `--time=24:00:00`.

    Raises:
        RunError: one does not.
    """
    for option in options:
        if not option.startswith("--") or len(option.splitlines()) != 1:
            raise RunError(f"--sbatch {option!r}: must be an option of sbatch, such as --sbatch=--time=24:00:00")


def write_script(folder: Path, command: Sequence[str], tasks: int, options: Sequence[str] = ()) -> Path:
    """Write the script of a job array into a run folder.

    A task that is killed, or put back into the queue, continues the part of its number.

    Args:
        folder: the run folder, on a file system that all machines share.
        command: the arguments of `llm-coop` that play the run, without `--part`.
        tasks: the number of parts, 1 or more.
        options: further options of sbatch, checked by `check_options`; they win over the script's own.

    Returns:
        The script's path.

    Raises:
        RunError: the script cannot be written.
    """
    path = (folder / SCRIPT).absolute()
    text = _SCRIPT.format(
        name=shlex.quote(folder.name),
        last=tasks - 1,
        here=shlex.quote(str(Path.cwd())),
        logs=shlex.quote(str(path.parent)).replace("%", "%%"),
        more="".join(f"#SBATCH {option}\n" for option in options),
        command=shlex.join([sys.executable, "-m", "llm_coop_envs", *command]),
    )
    write_whole(path, text.encode())
    return path


def submit(script: Path) -> str | None:
    """Hand a script to SLURM.

    Returns:
        The job's number; `None` if there is no SLURM here.

    Raises:
        RunError: SLURM refuses it.
    """
    sbatch = shutil.which("sbatch")
    if sbatch is None:
        return None
    done = subprocess.run([sbatch, "--parsable", str(script)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise RunError(f"sbatch does not take {script}: {reason}")
    return done.stdout.strip().partition(";")[0]
