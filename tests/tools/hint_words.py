"""Stems that would tell a player what is studied.

No wording, observation or message of a scripted policy may hold one of them, in upper or lower case. Personas are texts
that a policy carries, or a part of a condition; only those marked `instruction: true` may use these stems.
"""

ENGLISH = (
    "altruis",
    "beauty contest",
    "benchmark",
    "bertrand",
    "cartel",
    "collu",
    "conspir",
    "cooperat",
    "equilibri",
    "experiment",
    "game theor",
    "joint profit",
    "keynes",
    "level-k",
    "monopol",
    "nash",
    "price war",
    "prisoner",
    "research",
    "selfish",
    "simulat",
    "tacit",
    "team up",
    "teamwork",
    "undercut",
)
GERMAN = (
    "absprache",
    "altruis",
    "egois",
    "experiment",
    "forsch",
    "gefangenendilemma",
    "gleichgewicht",
    "kartell",
    "kooper",
    "monopol",
    "preiskrieg",
    "schönheitswettbewerb",
    "simul",
    "spieltheor",
    "studie",
    "teamarbeit",
    "unterbiet",
    "verschwör",
    "zusammenarbeit",
)
