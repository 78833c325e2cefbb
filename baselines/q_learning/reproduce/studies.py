"""The published variants of the experiment, with the numbers they are compared with.

Unless a study says otherwise the numbers are those of Calvano et al. (2020) as printed by their replication package
(openICPSR 119462): means over 1,000 sessions, three decimals. A comparison with other random numbers must allow for the
sampling error of both sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.bertrand.settings import BertrandSettings

MEASURES = ("gain", "time", "equilibrium", "answer", "unprofitable", "punishment")
"""What is compared, by the names of `measures.summary`: profit gain, periods to convergence (window not counted),
equilibrium play on path, mean price change of rivals after a deviation to the static best reply (their IR), share of
such deviations that do not pay (IC), and periods until play is back (punishment length)."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One line of a study.

    Attributes:
        name: what it is called.
        settings: what learns; ties at random, as in the authors' code, only where the first table is flat.
        published: known values by the names in `MEASURES`.
        sample: how many sessions these are means over.
        sessions: how many sessions are enough for a first look, where that is less than the study's number.
    """

    name: str
    settings: QLearningSettings
    published: Mapping[str, float] = field(default_factory=dict)
    sample: int = 1000
    sessions: int | None = None


@dataclass(frozen=True, kw_only=True)
class Study:
    """Variants that belong together.

    Attributes:
        title: what they vary.
        source: where the published numbers stand.
        variants: the lines.
        sessions: how many sessions each takes by default.
    """

    title: str
    source: str
    variants: tuple[Variant, ...]
    sessions: int = 200


def learners(market: Mapping[str, Any] | None = None, **given: Any) -> QLearningSettings:
    """The representative experiment with some fields changed."""
    return QLearningSettings(market=BertrandSettings.build("calvano", **(market or {})), **given)


def _line(name: str, settings: QLearningSettings, *values: float | None, sessions: int | None = None) -> Variant:
    """A variant with published gain, equilibrium play, answer, unprofitable share and punishment, as far as known."""
    names = ("gain", "equilibrium", "answer", "unprofitable", "punishment")
    known = {key: value for key, value in zip(names, values, strict=False) if value is not None}
    return Variant(name=name, settings=settings, published=known, sessions=sessions)


_REPRESENTATIVE = Variant(
    name="representative",
    settings=learners(),
    published={
        "gain": 0.849,
        "time": 1_751_250.0,
        "equilibrium": 0.505,
        "answer": -0.127,
        "unprofitable": 0.936,
        "punishment": 5.705,
    },
)

# Read off the vector graphics of Figure 3.
_DELTAS = {
    0.0: 0.212,
    0.1: 0.207,
    0.2: 0.178,
    0.3: 0.160,
    0.34: 0.156,
    0.4: 0.173,
    0.5: 0.215,
    0.6: 0.278,
    0.7: 0.372,
    0.8: 0.500,
    0.9: 0.710,
    0.95: 0.849,
    0.97: 0.892,
    0.99: 0.934,
}

_BETAS = (4e-7, 2e-6, 4e-6, 1e-5, 2e-5)

# Gain and millions of periods, 200 sessions a cell (60 at beta 4e-7), from an earlier implementation in C.
_CELLS = {
    0.025: ((0.846, 10.6), (0.850, 2.81), (0.802, 1.48), (0.730, 0.932), (0.708, 0.546)),
    0.05: ((0.807, 11.6), (0.882, 2.86), (0.860, 1.63), (0.770, 0.758), (0.728, 0.502)),
    0.10: ((0.717, 13.3), (0.858, 3.00), (0.871, 1.71), (0.823, 0.813), (0.765, 0.442)),
    0.15: ((0.730, 14.5), (0.828, 3.26), (0.841, 1.79), (0.834, 0.857), (0.784, 0.465)),
    0.20: ((0.687, 15.3), (0.753, 3.40), (0.817, 1.86), (0.836, 0.891), (0.789, 0.491)),
    0.25: ((0.701, 16.4), (0.714, 3.67), (0.767, 1.91), (0.826, 0.900), (0.804, 0.495)),
}


def _alpha_beta() -> tuple[Variant, ...]:
    return tuple(
        Variant(
            name=f"alpha {alpha:g} beta {beta:g}",
            settings=learners(alpha=alpha, beta=beta),
            published={"gain": gain, "time": 1e6 * millions},
            sample=60 if beta == _BETAS[0] else 200,
            sessions=60 if beta == _BETAS[0] else None,
        )
        for alpha, row in _CELLS.items()
        for beta, (gain, millions) in zip(_BETAS, row, strict=True)
    )


def _linear(gamma: float, *values: float) -> Variant:
    """Singh and Vives demand with quality 1, no cost and substitutability gamma; their grid stops at a price of 0."""
    market = {"demand": "linear", "quality": 1.0, "cost": 0.0, "beta": 1.0, "d": gamma, "clamp_demand": True}
    nash, joint = round((1.0 - gamma) / (2.0 - gamma), 9), 0.5
    low, high = max(0.0, nash - 0.1 * (joint - nash)), joint + 0.1 * (joint - nash)
    wide = {**market, "benchmark_decimals": 9, "grid_margin": 0.0}
    return _line(f"gamma {gamma:g}", learners(wide, price_range=(low, high)), *values)


STUDIES: dict[str, Study] = {
    "representative": Study(
        title="the representative experiment (alpha 0.15, beta 4e-6)",
        source="Tables I and A5, A_res.txt",
        variants=(_REPRESENTATIVE,),
        sessions=1000,
    ),
    "delta": Study(
        title="discount factor",
        source="Figure 3",
        variants=tuple(_line(f"delta {d:g}", learners(delta=d), gain) for d, gain in _DELTAS.items()),
    ),
    "alpha_beta": Study(
        title="learning and exploration: a grid over Figure 1",
        source="an earlier implementation in C, not the authors'; their Figure 1 shows 70 to 90 % over this range",
        variants=_alpha_beta(),
    ),
    "firms": Study(
        title="number of firms",
        source="Table A5 and its neighbours",
        variants=(
            _REPRESENTATIVE,
            _line("3 firms", learners({"firms": 3}), 0.643, 0.184, -0.078, 0.882, 11.686, sessions=100),
            _line(
                "3 firms, alpha 0.05, beta 2.4e-7",
                learners({"firms": 3}, alpha=0.05, beta=2.4e-7),
                0.750,
                0.306,
                -0.146,
                0.908,
                7.548,
                sessions=20,
            ),
            _line("4 firms", learners({"firms": 4}), 0.559, 0.717, -0.080, 0.899, 18.4, sessions=20),
        ),
    ),
    "cost": Study(
        title="cost of firm 2",
        source="Table IV",
        variants=tuple(
            _line(f"cost {c:g}", learners({"cost": (1.0, c)}), gain)
            for c, gain in ((0.875, 0.841), (0.75, 0.812), (0.625, 0.781), (0.5, 0.759), (0.25, 0.713))
        ),
    ),
    "quality": Study(
        title="quality of firm 2",
        source="appendix, quality of firm 2 (two decimals)",
        variants=tuple(
            _line(f"quality {a:g}", learners({"quality": (2.0, a)}), *values)
            for a, values in (
                (2.125, (0.84, 0.54, -0.15, 0.92)),
                (2.25, (0.81, 0.52, -0.16, 0.92)),
                (2.375, (0.78, 0.55, -0.17, 0.91)),
                (2.5, (0.76, 0.56, -0.19, 0.93)),
                (2.75, (0.71, 0.57, -0.21, 0.89)),
            )
        ),
    ),
    "differentiation": Study(
        title="horizontal differentiation mu",
        source="appendix, product substitutability",
        variants=tuple(
            _line(f"mu {mu:g}", learners({"mu": mu}), *values)
            for mu, values in (
                (0.5, (0.856, 0.331, -0.095, 0.906, 6.170)),
                (0.4, (0.859, 0.405, -0.102, 0.914, 5.954)),
                (0.3, (0.859, 0.433, -0.118, 0.919, 5.804)),
                (0.2, (0.839, 0.532, -0.139, 0.918, 5.562)),
                (0.1, (0.829, 0.660, -0.171, 0.897, 5.465)),
                (0.05, (0.827, 0.694, -0.201, 0.919, 5.677)),
                (0.01, (0.805, 0.654, -0.220, 0.875, 5.560)),
            )
        ),
    ),
    "linear": Study(
        title="linear demand",
        source="appendix, linear demand",
        variants=(
            _linear(0.25, 0.823, 0.265, -0.074, 0.877, 6.270),
            _linear(0.5, 0.770, 0.318, -0.173, 0.885, 6.305),
            _linear(0.75, 0.634, 0.429, -0.289, 0.849, 5.723),
            _linear(0.9, 0.753, 0.385, -0.345, 0.715, 5.256),
            _linear(0.99, 0.871, 0.389, -0.380, 0.783, 5.687),
        ),
    ),
    "initial": Study(
        title="the first Q table",
        source="appendix, initialisation",
        variants=(
            _line("nash", learners(initial="nash"), 0.731, 0.647, -0.104, 0.915, 5.244),
            _line("grim", learners(initial="grim"), 0.724, 0.640, -0.104, 0.925, 5.350),
            _line("random 0 to 10", learners(initial="random"), 0.877, 0.238, -0.113, 0.853, 5.604),
            _line("constant 5", learners(initial="constant", ties="random"), 0.793, 0.621, -0.119, 0.928, 5.481),
            _line(
                "constant 10, no exploration",
                learners(initial="constant", initial_value=10.0, exploration="none", ties="random"),
                0.978,
                0.525,
                -0.120,
                0.951,
                9.619,
            ),
        ),
    ),
    "grid": Study(
        title="the grid of prices",
        source="appendix, action space",
        variants=(
            _line(
                "xi 0.5",
                learners({"grid_margin": 0.5}, initial="nash", initial_points=(2, 2)),
                0.761,
                0.730,
                -0.125,
                0.947,
                4.694,
            ),
            _line(
                "lowest price 0.99",
                learners(price_range=(0.99, 1.92498 + 0.1 * (1.92498 - 1.47293))),
                0.612,
                0.871,
                -0.112,
                0.942,
                4.258,
            ),
            _line("m 50", learners({"grid_points": 50}), 0.709, 0.154, -0.059, 0.931, 12.713, sessions=100),
            _line("m 100", learners({"grid_points": 100}), 0.704, 0.684, -0.071, 0.986, 23.301, sessions=40),
        ),
    ),
    "memory": Study(
        title="memory, and what learners without it or without patience do",
        source="appendix, memory; the first line is their check of the algorithm",
        variants=(
            _line(
                "none, delta 0, alpha 0.25, beta 1e-3",
                learners(memory=0, delta=0.0, alpha=0.25, beta=1e-3),
                0.185,
                0.273,
            ),
            _line("none, delta 0", learners(memory=0, delta=0.0)),
            _line("none, delta 0.95", learners(memory=0)),
            _line("two rounds", learners(memory=2), 0.574, 0.371, -0.030, 0.441, 24.038, sessions=40),
        ),
    ),
    "exploration": Study(
        title="Boltzmann exploration",
        source="appendix, Boltzmann exploration",
        variants=(
            _line(
                "boltzmann",
                learners(exploration="boltzmann", alpha=0.05),
                0.856,
                0.094,
                -0.090,
                0.841,
                6.554,
            ),
        ),
    ),
    "asymmetric": Study(
        title="firm 1 learns otherwise",
        source="appendix, asymmetric learning",
        variants=(
            _line("alpha 0.05", learners(alpha=(0.05, 0.15)), 0.821, 0.304, -0.114, 0.864, 5.206),
            _line("alpha 0.3", learners(alpha=(0.30, 0.15)), 0.797, 0.523, -0.112, 0.900, 6.060),
            _line("beta 2e-6", learners(beta=(2e-6, 4e-6)), 0.771, 0.423, -0.112, 0.882, 5.333),
            _line("beta 8e-6", learners(beta=(8e-6, 4e-6)), 0.798, 0.310, -0.109, 0.853, 5.599),
        ),
    ),
    "updates": Study(
        title="synchronous updates",
        source="none for this market; Asker, Fershtman and Pakes (2021) find competitive prices in theirs",
        variants=(_line("synchronous", learners(updates="synchronous")),),
    ),
}
