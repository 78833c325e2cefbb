"""`llm-coop slurm`: play a study as a SLURM job array."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llm_coop_envs.cli.messages import note, sentences
from llm_coop_envs.cli.run_options import RunOptions, option, with_options
from llm_coop_envs.cli.trusting import TRUST, trust_program


@sentences
@with_options(without=("part", "replay", *TRUST))
def slurm_command(
    study: Annotated[str, typer.Argument(help="A shipped study's name, or a YAML file.")],
    options: RunOptions,
    array: Annotated[int, option("How many parts play side by side: tasks of the job array.", "--array", min=1)],
    out: Annotated[
        Path | None,
        option("The run folder, on a file system that all machines share. (default: runs/STUDY-N)", "-o", "--out"),
    ] = None,
    workers: Annotated[
        int | None,
        option("Processes of each part, for episodes without a model. (default: all of its cores)", "--workers", min=1),
    ] = None,
    sbatch: Annotated[
        list[str] | None,
        option("What else sbatch is told, such as --sbatch=--time=24:00:00. May be given several times.", "--sbatch"),
    ] = None,
    show: Annotated[bool, option("Print the script, and submit nothing.", "--print")] = False,
) -> None:
    """Write a job array that plays a study, and submit it; given again, it plays what is missing."""
    from llm_coop_envs.runs.runner import begin_run
    from llm_coop_envs.runs.slurm import check_options, submit, write_script
    from llm_coop_envs.storage.folder import chosen_folder
    from llm_coop_envs.studies.study import load_study

    check_options(sbatch or ())
    path = Path(study).expanduser()
    trust_program(path if path.is_file() else None)
    plan = options.study(load_study(study, options.seed))
    with chosen_folder(out, plan.name) as folder:
        begin_run(plan, folder, options.access())
        command = ["run", study, *options.again(), "-o", str(folder.absolute())]
        worker_arguments = [] if workers is None else ["--workers", str(workers)]
        script = write_script(folder, [*command, *worker_arguments], array, sbatch or ())
    if show:
        typer.echo(script.read_text(encoding="utf-8"), nl=False)
        return
    job = submit(script)
    if job is None:
        typer.echo(script.read_text(encoding="utf-8"), nl=False)
        note(f"There is no sbatch on this machine, so nothing was submitted; on one that has it: sbatch {script}")
        return
    note(f"Job {job}: {array} parts play {folder}; their logs are in {script.parent}.")
