"""The comparison of learners, scripted rules and models in price competition: `llm-coop run collusion_comparison`.

Everybody plays the same three markets on the same grids of prices, and is measured by the same functions
(`bertrand.paths`, `bertrand.branching`). `arms.py` says who plays, `playing.py` plays and measures one episode,
`runs.py` plays them all, `report.py` writes the page.
"""

NAME = "collusion_comparison"
"""What the comparison is called on the command line."""

ABOUT = (
    "Q-learners, scripted rules and, where given, deep learners and language models in three markets: how long until "
    "prices stay up, how high, and how a deviation is answered, beside the published numbers."
)
