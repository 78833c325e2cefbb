"""The README's film and pictures of scenarios: `python -m llm_coop_envs.benchmarks.doc_pages.readme_pictures`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.policies import play
from llm_coop_envs.policies.scripted import make
from llm_coop_envs.render.film import Film, form_of, write_film
from llm_coop_envs.render.scenes.base import Scene
from llm_coop_envs.render.scenes.from_events import frames
from llm_coop_envs.render.screen.canvas import View
from llm_coop_envs.render.screen.draw import draw, frame
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


def film_evacuation(path: Path) -> None:
    """Film people who follow the crowd, one picture per round, until the last has left."""
    env = evacuation_v0.parallel_env(record=True)
    play(env, make("evacuation/herding"), seed=4)
    film = Film(fps=4, width=640, height=420, scale=2 / 3, per="round")
    view = View(size=(960, 630), scale=film.scale, bubbles=True)
    write_film((frame(scene, view) for scene in frames(env.events, per="round")), path, form_of(path), film)


def main() -> None:
    """Draw the pictures and the film into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("docs/pictures"), help="where they go")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in PICTURES.items():
        path = folder / f"{name}.png"
        pygame.image.save(draw(*picture()), str(path))
    film_evacuation(folder / "evacuation.gif")
    for path in sorted(folder.iterdir()):
        print(f"{path}  {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
