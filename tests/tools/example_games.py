"""The examples' games, each in the ways in which it asks for something else."""

from auction.env import AuctionEnv
from commons.env import CommonsEnv
from dilemma.env import DilemmaEnv
from fishery.env import FisheryEnv
from market.env import MarketEnv

GAMES = {
    "auction": lambda: AuctionEnv(rounds=2),
    "commons": lambda: CommonsEnv(months=2),
    "commons-pasture": lambda: CommonsEnv(months=2, wording="pasture"),
    "commons-pollution": lambda: CommonsEnv(months=2, wording="pollution"),
    "commons-newcomer": lambda: CommonsEnv(months=4, preset="newcomer"),
    "dilemma": lambda: DilemmaEnv(rounds=2),
    "dilemma-stated": lambda: DilemmaEnv(rounds=2, stated=True),
    "dilemma-goods": lambda: DilemmaEnv(rounds=2, game="public_goods", players=4),
    "dilemma-travellers": lambda: DilemmaEnv(rounds=2, game="travellers"),
    "fishery": lambda: FisheryEnv(seasons=3),
    "market": lambda: MarketEnv(rounds=2),
    "market-double": lambda: MarketEnv(rounds=2, rule="double"),
}
