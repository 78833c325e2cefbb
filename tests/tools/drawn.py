"""Scenes for the tests of pictures: short scripted episodes."""

import dataclasses
import os
from functools import lru_cache

import numpy as np

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.policies import play
from llm_coop_envs.policies.scripted import make
from llm_coop_envs.render.scenes.from_events import frames
from llm_coop_envs.render.screen.draw import array_of
from llm_coop_envs.render.screen.pygame_import import pygame


@lru_cache(maxsize=16)
def evacuation(per="step", **settings):
    env = evacuation_v0.parallel_env(**{"rows": 13, "cols": 13, "people": 20, **settings}, record=True)
    play(env, make("evacuation/herding"), seed=2)
    return frames(env.events, per=per)


@lru_cache(maxsize=4)
def bertrand(per="step", **settings):
    env = bertrand_v0.parallel_env(**{"preset": "team_up_linear", "rounds": 12, **settings}, record=True)
    play(env, {"firm_0": make("bertrand/grim_trigger"), "firm_1": make("bertrand/price_matching")}, seed=0)
    return frames(env.events, per=per)


@lru_cache(maxsize=4)
def kbc(per="step", **settings):
    env = kbc_v0.parallel_env(**{"players": 12, **settings}, record=True)
    play(env, make("kbc/poisson"), seed=0)
    return frames(env.events, per=per)


def talking(scenes, round_=1):
    """The last scene of a round's talk."""
    return next(scene for scene in reversed(scenes) if scene.doing == "talk" and scene.round == round_)


def saying(scene, *texts):
    """The scene with other words."""
    said = (dataclasses.replace(one, text=texts[k % len(texts)]) for k, one in enumerate(scene.said))
    return dataclasses.replace(scene, said=tuple(said))


def assert_golden(picture, path):
    """The picture is the recorded one; `UPDATE_GOLDEN=1` records it anew."""
    if os.environ.get("UPDATE_GOLDEN"):
        pygame.image.save(picture, str(path))
    wanted = array_of(pygame.image.load(str(path))).astype(int)
    got = array_of(picture).astype(int)
    assert got.shape == wanted.shape
    # Another build of SDL may smooth edges a little otherwise; anything that moved is far more than this.
    different = (np.abs(got - wanted).max(axis=2) > 48).mean()
    assert different < 0.004, f"{different:.2%} of the pixels differ; if that is wanted, set UPDATE_GOLDEN=1 and look"
