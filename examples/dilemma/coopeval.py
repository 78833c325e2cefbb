"""Reads what CoopEval recorded (arXiv 2604.15267): folders with `config.json` and `records.jsonl`.

    llm-coop import coopeval CoopEval/data/main_study -o runs/coopeval

Each game with each institution is an arm. A match is an episode. Matches of one game between the same players in the
same seats have the same number in every arm in which partners are given, so that arms are compared match by match.
Whoever meets is the cluster; under reputation partners are drawn anew in each round, and a whole run is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import PurePosixPath
from typing import Any

from dilemma.env import DilemmaSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.mechanisms.stage_game import transfers
from llm_coop_envs.runs.imported import RecordedArm, RecordedEpisode, RecordedStep, Records
from llm_coop_envs.util.foreign import ForeignFolder

BY = (
    "the authors of CoopEval (Tewolde, Zhang, Guzman Piedrahita, Conitzer and Jin, ICML 2026, arXiv 2604.15267), who "
    "asked language models"
)
RECORDS, CONFIG, CONTRACTS = "records.jsonl", "config.json", "contract_design.json"
#: The games: their title, the preset here, and how their records call the actions, the cooperative one first.
GAMES: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "PrisonersDilemma": ("prisoner's dilemma", "prisoners_dilemma", ("COOPERATE", "DEFECT")),
    "PublicGoods": ("public goods", "public_goods", ("CONTRIBUTE", "FREE_RIDE")),
    "TravellersDilemma": ("traveller's dilemma", "travellers", ()),
    "TrustGame": ("trust", "trust", ("GIVE", "KEEP")),
    "StagHunt": ("stag hunt", "stag_hunt", ("STAG", "HARE")),
    "MatchingPennies": ("matching pennies", "matching_pennies", ("HEADS", "TAILS")),
}
#: The institutions: which mechanism of ours each is, its title, and how sentences speak of it.
MECHANISMS: Mapping[str, tuple[str, str, str]] = {
    "NoMechanism": ("none", "none", "without an institution"),
    "Repetition": ("repetition", "repetition", "when the same players meet again"),
    "ReputationFirstOrder": ("reputation", "reputation, first order", "with a reputation"),
    "Reputation": ("reputation_higher", "reputation, higher order", "with a reputation of higher order"),
    "Mediation": ("mediation", "mediation", "with a mediator"),
    "Contracting": ("contracting", "contracting", "with a contract"),
}
REMATCHED = ("ReputationFirstOrder", "Reputation")
_CONFIG = {
    "name": str,
    "game": {"type": str, "kwargs": dict},
    "mechanism": {"type": str, "kwargs": {"num_rounds?": int, "discount?": (int, float), "lookup_depth?": int}},
    "agents": [{"llm": {"model": str}, "type": str}],
}
_MOVE = {"player": str, "action": str, "points": (int, float)}
_ROUND = {"moves": [_MOVE], "all_signed?": bool, "selected_contract_designer_name?": str}
#: The form of a line: a round's moves without an institution; the rounds of a match; or all matches of a run.
_LINES = {"NoMechanism": [_MOVE], "Mediation": [_ROUND], "Contracting": [_ROUND]}
_CONTRACTS = {...: {"contract?": {...: (int, float)}}}


@dataclass(frozen=True, kw_only=True)
class Folder:
    """One game with one institution in one run.

    Attributes:
        path: its path in the records.
        name: what its configuration calls it.
        game: the game's name there.
        mechanism: the institution's name there.
        settings: the settings of the game here that differ from the usual ones.
        rules: all settings of the game here.
        agents: who plays.
    """

    path: PurePosixPath
    name: str
    game: str
    mechanism: str
    settings: Mapping[str, Any]
    rules: DilemmaSettings
    agents: tuple[str, ...]

    @property
    def file(self) -> str:
        """Its file of records."""
        return str(self.path / RECORDS)

    @property
    def arm(self) -> RecordedArm:
        """The arm that it belongs to."""
        kind, name, when = MECHANISMS[self.mechanism]
        title = f"{GAMES[self.game][0]}, {name}"
        extra = self.name.removeprefix("ablation_abl_") if self.name.startswith("ablation_") else ""
        pair = "" if self.mechanism in REMATCHED or extra else GAMES[self.game][1]
        return RecordedArm(
            name=self.name,
            title=f"{title} ({extra})" if extra else title,
            settings=self.settings,
            pair=pair,
            when=when if pair else "",
            mechanism=kind,
        )


def read_records(foreign: ForeignFolder) -> Records:
    """Read a folder of CoopEval: the whole study, one run of it, or one game with one institution.

    Raises:
        RunError: a file is of another form or version.
    """
    configs = [PurePosixPath(name) for name in foreign.find(CONFIG)]
    folders = [_read_config(foreign, path) for path in configs]
    there = {PurePosixPath(name).parent for name in foreign.find(RECORDS)}
    notes = [f"{folder.path}: has no {RECORDS}, and is left out" for folder in folders if folder.path not in there]
    order = [*product(GAMES, MECHANISMS)]
    folders = sorted(
        (folder for folder in folders if folder.path in there),
        key=lambda folder: (order.index((folder.game, folder.mechanism)), folder.name, folder.path),
    )
    arms: dict[str, RecordedArm] = {}
    for folder in folders:
        if arms.setdefault(folder.name, folder.arm) != folder.arm:
            raise foreign.refuse(str(folder.path / CONFIG), f"'{folder.name}' has other settings in another run")
    pairs = Counter(arm.pair for arm in arms.values())
    shown = [arm if pairs[arm.pair] > 1 else RecordedArm(**{**vars(arm), "pair": ""}) for arm in arms.values()]
    return Records(by=BY, arms=shown, episodes=_read_all(foreign, folders), notes=notes)


def _read_config(foreign: ForeignFolder, path: PurePosixPath) -> Folder:
    config = foreign.json(str(path), _CONFIG)
    game, mechanism = config["game"]["type"], config["mechanism"]["type"]
    if game not in GAMES or mechanism not in MECHANISMS:
        raise foreign.refuse(str(path), f"has the game {game!r} with {mechanism!r}, which is not known here")
    kwargs = config["mechanism"]["kwargs"]
    settings = _settings(foreign, path, game, config["game"]["kwargs"])
    if mechanism == "Repetition":
        again = {"rounds": "num_rounds", "continuation": "discount", "remembered": "lookup_depth"}
        settings["mechanism"] = {"kind": "repetition", **{name: kwargs.get(theirs) for name, theirs in again.items()}}
    try:
        rules = DilemmaSettings.build(**settings)
    except SettingsError as error:
        raise foreign.refuse(str(path), f"describes no game that can be played here ({error})") from error
    agents = tuple(f"{agent['llm']['model']}({agent['type'].removesuffix('Agent')})" for agent in config["agents"])
    return Folder(
        path=path.parent,
        name=config["name"],
        game=game,
        mechanism=mechanism,
        settings=settings,
        rules=rules,
        agents=agents,
    )


def _settings(foreign: ForeignFolder, path: PurePosixPath, game: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Our settings of a game."""
    preset = DilemmaSettings.presets[GAMES[game][1]]
    names = GAMES[game][2]
    settings = {name: value for name, value in preset.items() if name != "payoffs"}
    try:
        if game == "PublicGoods":
            settings |= {"players": kwargs["num_players"], "multiplier": kwargs["multiplier"]}
        elif game == "TravellersDilemma":
            if kwargs["claim_spacing"] != 1:
                raise ValueError(f"claims lie {kwargs['claim_spacing']} apart, not 1")
            low = kwargs["min_claim"]
            return {**settings, "claims": [low, low + kwargs["num_actions"] - 1], "bonus": kwargs["bonus"]}
        else:
            letters = [name[0] for name in names]
            cells = [[kwargs["payoff_matrix"][row + column] for column in letters] for row in letters]
            settings |= {"payoffs": cells}
    except (KeyError, TypeError, ValueError) as error:
        raise foreign.refuse(str(path), f"describes {game} in another way ({error!r})") from error
    return {**settings, "actions": [name.lower() for name in names]}


def _read_all(foreign: ForeignFolder, folders: Sequence[Folder]) -> Iterator[RecordedEpisode]:
    """The episodes of all folders, those of one arm numbered so that equal matches have equal numbers."""
    runs = sorted({folder.path.parent for folder in folders})
    agents = sorted({agent for folder in folders for agent in folder.agents})
    for folder in folders:
        run, met = runs.index(folder.path.parent), Counter[int]()
        contracts: Mapping[str, Any] = {}
        if folder.mechanism == "Contracting":
            contracts = foreign.json(str(folder.path / CONTRACTS), _CONTRACTS)
        for line, match in _matches(foreign, folder):
            origin = f"{folder.file}, line {line}"
            try:
                labels, steps = _read_match(folder, match, contracts)
            except (LookupError, TypeError, ValueError) as error:
                raise foreign.refuse(origin, f"holds a match of another form ({error!r})") from error
            if not set(labels) <= set(agents):
                raise foreign.refuse(origin, f"{min(set(labels) - set(agents))!r} is no agent of any {CONFIG}")
            pairing = _number([agents.index(label) for label in labels], len(agents))
            if folder.mechanism in REMATCHED:
                seed, cluster = len(runs) * met[-1] + run, f"run {run + 1}"
                met[-1] += 1
            else:
                seed = (met[pairing] * len(runs) + run) * len(agents) ** folder.rules.players + pairing
                cluster = " and ".join(sorted(labels))
                met[pairing] += 1
            yield RecordedEpisode(
                condition=folder.name,
                seed=seed,
                players={f"player_{index}": label for index, label in enumerate(labels)},
                steps=steps,
                origin=origin,
                cluster=cluster,
            )


def _number(digits: Sequence[int], base: int) -> int:
    """The number that these digits write."""
    return sum(digit * base**place for place, digit in enumerate(reversed(digits)))


def _matches(foreign: ForeignFolder, folder: Folder) -> Iterator[tuple[int, list[Any]]]:
    """The matches of a folder with the lines on which they stand: each a list of rounds.

    Under reputation a line holds all matches of a run, of one round each.
    """
    for number, line in enumerate(foreign.lines(folder.file, _LINES.get(folder.mechanism, [[_MOVE]])), 1):
        if folder.mechanism == "NoMechanism":
            yield number, [line]
        elif folder.mechanism in REMATCHED:
            yield from ((number, [moves]) for moves in line)
        else:
            yield number, line


def _read_match(
    folder: Folder, rounds: Sequence[Any], contracts: Mapping[str, Any]
) -> tuple[list[str], list[RecordedStep]]:
    """Who sat in the seats of a match, and what they did in its rounds.

    Raises:
        LookupError, TypeError, ValueError: it is of another form.
    """
    seated: list[list[str]] = []
    steps = []
    for played in rounds:
        moves = played["moves"] if isinstance(played, dict) else played
        moves = sorted(moves, key=lambda move: _seat(move["player"])[1])
        seats = [_seat(move["player"]) for move in moves]
        if [number for _, number in seats] != list(range(1, folder.rules.players + 1)):
            raise ValueError(f"its players are {', '.join(move['player'] for move in moves)}"[:200])
        seated.append([label for label, _ in seats])
        choices = [_action(folder, move["action"].rpartition(".")[2]) for move in moves]
        paid = [float(move["points"]) for move in moves]
        besides = None
        if folder.mechanism == "Contracting" and played["all_signed"]:
            contract = contracts[played["selected_contract_designer_name"]]["contract"]
            payments = tuple(float(contract[move["action"]]) for move in moves)
            besides = transfers(range(len(moves)), payments)
        actions = {f"player_{index}": {"choice": choice} for index, choice in enumerate(choices)}
        steps.append(RecordedStep(actions=actions, paid=paid, besides=besides))
    if not seated or any(labels != seated[0] for labels in seated):
        raise ValueError("its players change from round to round")
    return seated[0], steps


def _seat(player: str) -> tuple[str, int]:
    """Who a player is, and the number of its seat: `MODEL(CoT)#P2`."""
    label, _, number = player.rpartition("#P")
    return label, int(number)


def _action(folder: Folder, name: str) -> int:
    """The number of an action; claims count up from the lowest there, and down from the highest here."""
    names = folder.rules.names
    if folder.game == "TravellersDilemma":
        return [f"CLAIM_{number}" for number in reversed(range(len(names)))].index(name)
    return names.index(name.lower())
