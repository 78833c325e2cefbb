"""Study files: conditions x seeds, who plays, and what is measured.

A study is YAML. `policies` says who sits where: a policy's name for everyone, or a mapping from seats (`firm_0`, a
pattern such as `firm_*`, or `all`) to policies. A seat named exactly goes before patterns, patterns in their order,
`all` last. In place of a name there may be `{name: ..., options: {...}}`, or `{mix: [...]}` of such entries with a
`share` each. Where it says `given` or `given_model`, the condition is played only with a policy, or a language model,
that is given on the command line; with `given_model_1` and `given_model_2`, with each two models that are given.

A condition may have `variants`: a list of mappings with a name each, whose fields are put over the condition's. Each
makes a condition of its own, `<condition>-<variant>`, so that players x markets need not be written out. A `grid` lists
values of settings, as in `{players: [6, 12], talk: [true, false]}`; each combination makes a condition of its own, such
as `<condition>-players-6-talk-true`. `after` asks for what the scenario measures by playing on from the end of each
episode, with its options.

`changes` lists what is otherwise from a round on, for all players or for some: settings, another policy, other options.

Conditions with the same `pair` are arms of one comparison: their policies draw the same random numbers, and reports
show by how much they differ, seed by seed. P values are adjusted for all tests of a scenario, or for those of a
`family` that the arms name. `primary` names what is tested of a study, and why; all other comparisons are then shown
without a claim.

`model` holds the options that make an arm where a language model is given for its seats: a persona, a temperature. They
win over what is given for all models. Under `seats` it may hold options by seat, or nothing for a seat that keeps its
own player. Rules that follow others by `changes` do not follow a model that is given so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_coop_envs.core.settings import plain
from llm_coop_envs.errors import MissingExtra, StudyError
from llm_coop_envs.storage.folder import digest_of
from llm_coop_envs.studies.conditions import (
    GIVEN,
    GIVEN_MODEL,
    GIVEN_MODELS,
    Condition,
    Player,
    PolicyChange,
    assign_seats,
    fits,
    make_player,
)
from llm_coop_envs.studies.families import Primary, read_primary
from llm_coop_envs.studies.players import asks_a_model, check_policy, learns
from llm_coop_envs.studies.study_file import (
    EVERY_EPISODE,
    MAX_EPISODES,
    MAX_SEED,
    check_measures,
    derived_seeds,
    read_conditions,
)
from llm_coop_envs.treatments.changes import EVERYONE
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.yaml_source import Spot, read_yaml, read_yaml_file
from llm_coop_envs.version import PACKAGE_FOLDER

__all__ = [
    "EVERYONE",
    "EVERY_EPISODE",
    "GIVEN",
    "GIVEN_MODEL",
    "GIVEN_MODELS",
    "MAX_EPISODES",
    "MAX_SEED",
    "Condition",
    "Player",
    "PolicyChange",
    "Study",
    "assign_seats",
    "check_players",
    "derived_seeds",
    "fits",
    "load_study",
    "make_player",
    "parse_study",
    "read_description",
    "shipped_studies",
]

SHIPPED = PACKAGE_FOLDER / "benchmarks" / "studies"

_STUDY_FIELDS = ("name", "description", "source", "settles", "seed", "conditions", "measures", "primary")


@dataclass(frozen=True, kw_only=True)
class Study:
    """Conditions x seeds.

    Attributes:
        name: the study's name; run folders are named after it.
        description: what it is for.
        source: the paper and the part of it that is played again; empty for none.
        settles: differences between papers and programs between which its conditions, or their settings, choose.
        seed: where all randomness of policies (and the seeds of `episodes: n`) comes from.
        conditions: what is played.
        measures: the metrics that reports put first; empty for all.
        text: the file's content.
        given: what was given in place of the file's players, seeds and rounds, in words; empty without any.
        optional: conditions that are played only with a player who is given for them.
        primary: the tests that it is made for; `None` if it names none, and all comparisons of a family are tested.
    """

    name: str
    description: str
    seed: int
    conditions: tuple[Condition, ...]
    measures: tuple[str, ...]
    text: str
    given: tuple[str, ...] = ()
    optional: tuple[Condition, ...] = ()
    source: str = ""
    settles: tuple[str, ...] = ()
    primary: Primary | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the results, as plain data."""
        told = ("title", "variant", "preset", "changed", "family")  # what is said of a condition changes nothing played
        conditions = [{k: v for k, v in c.to_json().items() if k not in told} for c in self.conditions]
        return {"seed": self.seed, "conditions": conditions}

    @property
    def digest(self) -> str:
        """A hash of `identity`."""
        return digest_of(self.identity)

    @property
    def models(self) -> tuple[Player, ...]:
        """The players that ask a language model, each once."""
        found = {
            json.dumps([player.to_json(), plain(player.endpoint)], sort_keys=True, default=str): player
            for condition in self.conditions
            for player in condition.players
            if asks_a_model(player.policy)
        }
        return tuple(found.values())


def shipped_studies() -> dict[str, Path]:
    """The studies that come with the package, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def read_description(path: Path) -> str:
    """What a study file says it is for, without making what it needs."""
    fields = read_yaml_file(path)[1].mapping()
    return fields["description"].text() if "description" in fields else ""


def load_study(name: str, seed: int | None = None) -> Study:
    """Read a study.

    Args:
        name: a shipped study's name, or a file's path.
        seed: replaces the study's seed.

    Raises:
        StudyError: it does not exist or is wrong; the sentence names file, line and field.
    """
    path = Path(name).expanduser()
    shipped = shipped_studies()
    if name in shipped and not path.is_file():
        path = shipped[name]
    elif not path.exists():
        raise StudyError(f"there is no study '{name}' and no such file; {suggestion(name, shipped)}")
    text, spot = read_yaml_file(path)
    return _study(spot, text, seed)


def parse_study(text: str, source: str, seed: int | None = None) -> Study:
    """Read a study from text; as `load_study`, with `source` as the file's name in messages."""
    return _study(read_yaml(text, source), text, seed)


def check_players(study: Study) -> None:
    """Find out, before anything is written, whether all players can be played here.

    Raises:
        MissingExtra: what one of them needs is not installed.
    """
    for condition in study.conditions:
        for player in condition.players:
            try:
                if learns(player.policy):
                    check_policy(condition.scenario, player.policy, player.options)
            except MissingExtra as error:
                where = f"in the condition '{condition.name}' (--only plays others)"
                raise MissingExtra(f"{error.what}, {where},", error.extra) from error


def _study(spot: Spot, text: str, seed: int | None) -> Study:
    fields = spot.mapping(_STUDY_FIELDS, required=("name", "conditions"))
    given = fields["seed"].integer(0, MAX_SEED) if "seed" in fields else 0
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise StudyError(f"seed={seed}: must be between 0 and {MAX_SEED}")
    study_seed = given if seed is None else seed
    conditions = read_conditions(fields["conditions"], study_seed)
    measures = fields["measures"].items() if "measures" in fields else []
    check_measures(measures, conditions)
    shown = tuple(one.text() for one in measures)
    return Study(
        name=fields["name"].label(),
        description=fields["description"].text() if "description" in fields else "",
        seed=study_seed,
        conditions=tuple(one for one in conditions if not one.awaits),
        measures=shown,
        text=text,
        optional=tuple(one for one in conditions if one.awaits),
        source=fields["source"].text() if "source" in fields else "",
        settles=tuple(one.text() for one in fields["settles"].items()) if "settles" in fields else (),
        primary=read_primary(fields["primary"], conditions, shown) if "primary" in fields else None,
    )
