"""The pictures of the README, from scripted runs: `python -m llm_coop_envs.benchmarks.doc_pages.readme_pictures`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.policies import play
from llm_coop_envs.policies.scripted import make
from llm_coop_envs.render.scenes.base import Scene
from llm_coop_envs.render.scenes.from_events import frames
from llm_coop_envs.render.screen.canvas import View
from llm_coop_envs.render.screen.draw import draw
from llm_coop_envs.render.screen.pygame_import import pygame

Picture = tuple[Scene, View]


def evacuation() -> Picture:
    """Draw the tenth round of people who follow the crowd, with the most heard speaker selected."""
    env = evacuation_v0.parallel_env(record=True)
    play(env, make("evacuation/herding"), seed=4)
    scenes = [scene for scene in frames(env.events) if scene.round == 10 and scene.doing == "talk"]
    loudest = max(scenes[-1].said, key=lambda message: len(message.hearers or ()))
    return scenes[-1], View(selected=loudest.speaker, bubbles=True)


def bertrand() -> Picture:
    """Draw a firm that follows its rival's price upwards, and one that strikes back."""
    env = bertrand_v0.parallel_env(preset="team_up_linear", rounds=80, record=True)
    play(env, {"firm_0": make("bertrand/price_matching"), "firm_1": make("bertrand/tit_for_tat")}, seed=0)
    return next(scene for scene in frames(env.events) if scene.round == 60 and scene.doing == "settled"), View()


def kbc() -> Picture:
    """Draw the last decision of players who announce numbers and follow the others."""
    env = kbc_v0.parallel_env(record=True)
    seats = [make("kbc/follower"), make("kbc/poisson"), make("kbc/announcer")]
    play(env, {name: seats[k % 3] for k, name in enumerate(env.possible_agents)}, seed=1)
    return frames(env.events)[-1], View()


PICTURES: dict[str, Callable[[], Picture]] = {"evacuation": evacuation, "bertrand": bertrand, "kbc": kbc}


def main() -> None:
    """Draw the pictures into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("docs/pictures"), help="where they go")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in PICTURES.items():
        path = folder / f"{name}.png"
        pygame.image.save(draw(*picture()), str(path))
        print(f"{path}  {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
