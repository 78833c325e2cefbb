"""`llm-coop train`: let a network learn to play."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from llm_coop_envs.cli.messages import EXIT_INTERRUPTED, note, sentences
from llm_coop_envs.cli.trusting import trust_program
from llm_coop_envs.util.values import read_pairs


@sentences
def train_command(
    env: Annotated[str, typer.Option("--env", help="The scenario, such as kbc.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder; a training in it is continued.")],
    algo: Annotated[
        str | None,
        typer.Option(
            "--algo",
            help="ppo, dqn, maskable_ppo or sac. (default: the scenario's own)",
            show_default=False,
        ),
    ] = None,
    networks: Annotated[
        str | None,
        typer.Option(
            "--networks",
            help="shared: one network for all players; independent: a learner for each. (default: the scenario's own)",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[str | None, typer.Option("--preset", help="A preset of the scenario.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the scenario, as name=value; may be repeated.")
    ] = None,
    steps: Annotated[
        int, typer.Option("--steps", min=1, help="Steps in all; one player in one step of one copy counts 1.")
    ] = 100_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")] = 0,
    copies: Annotated[
        int | None, typer.Option("--copies", min=1, help="Environments side by side. (default: 8; 1 for sac)")
    ] = None,
    hyper: Annotated[
        list[str] | None, typer.Option("--hyper", help="An argument of the algorithm, as name=value; may be repeated.")
    ] = None,
    shaping: Annotated[
        bool, typer.Option("--shaping/--no-shaping", help="Where the scenario has a potential: reward progress too.")
    ] = True,
    play: Annotated[
        str | None, typer.Option("--play", help="How the policy decides: sample or best.", show_default=False)
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(
            "--every", min=1, help="Steps between evaluations and checkpoints. (default: a tenth)", show_default=False
        ),
    ] = None,
    episodes: Annotated[int, typer.Option("--episodes", min=1, help="Episodes of an evaluation.")] = 5,
) -> None:
    """Train networks that play all seats, with stable-baselines3; the same command continues after a stop."""
    from llm_coop_envs.baselines.deep.settings import TrainSettings, default_algorithm
    from llm_coop_envs.baselines.learning import MASKABLE_PPO
    from llm_coop_envs.core.registry import find_scenario
    from llm_coop_envs.runs.progress import counting, working

    trust_program()
    plan = TrainSettings(
        env=env,
        algo=algo,
        networks=networks,
        preset=preset,
        settings=read_pairs("--set", settings or ()),
        steps=steps,
        seed=seed,
        copies=copies,
        shaping=shaping,
        play=play,
        every=every,
        episodes=episodes,
        hyper=read_pairs("--hyper", hyper or ()),
    )
    with working("Loading PyTorch"):
        from llm_coop_envs.baselines.deep.train import train

    if plan.algo != MASKABLE_PPO == default_algorithm(plan.environment()):
        note(
            f"{plan.algo} knows no masks: what may not be done is replaced by the environment; {MASKABLE_PPO} knows "
            "them."
        )
    folder = out.expanduser()
    parts = _command(plan.to_json(), preset, settings, hyper, shaping, play, every, episodes)
    again = shlex.join([*parts, "-o", str(folder)])
    headline = find_scenario(env).measured.headline[:1]
    begun = time.perf_counter()

    def tell(done: int, means: dict[str, float], seconds: float) -> None:
        headlines = [f"{name} {means[name]:.4g}" for name in headline if name in means]
        summary = ", ".join([*headlines, f"return {means['return_mean']:.5g}"])
        note(f"{done:>11,} of {plan.steps:,} steps, {seconds:.0f} s: {summary}")

    try:
        with counting("steps", plan.steps) as count:
            training = train(plan, folder, command=shlex.join(parts), tell=tell, count=count)
    except KeyboardInterrupt:
        note(f"Stopped. What was learned up to the last checkpoint is in {folder}; continue with: {again}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    note(f"Done: {training.done:,} steps are in {folder} ({time.perf_counter() - begun:.0f} s now).")
    game_arguments = [
        *([] if preset is None else ["--preset", preset]),
        *(part for assignment in settings or () for part in ("--set", assignment)),
    ]
    typer.echo(f"Next: {shlex.join(['llm-coop', 'evaluate', f'sb3:{folder}', '--env', env, *game_arguments])}")


def _command(
    plan: dict[str, Any],
    preset: str | None,
    settings: list[str] | None,
    hyper: list[str] | None,
    shaping: bool,
    play: str | None,
    every: int | None,
    episodes: int,
) -> list[str]:
    """The command that makes the same training, without its folder."""
    parts = ["llm-coop", "train", "--algo", plan["algo"], "--env", plan["env"], "--networks", plan["networks"]]
    for name, value in (("--preset", preset), ("--play", play), ("--every", every)):
        parts += [] if value is None else [name, str(value)]
    for name, pairs in (("--set", settings), ("--hyper", hyper)):
        for pair in pairs or ():
            parts += [name, pair]
    parts += [] if shaping else ["--no-shaping"]
    parts += [] if episodes == 5 else ["--episodes", str(episodes)]
    parts += ["--copies", str(plan["copies"]), "--steps", str(plan["steps"]), "--seed", str(plan["seed"])]
    return parts
