"""Citations of a run as BibTeX: this software, and the papers that its study names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from llm_coop_envs.version import __version__

TITLE = "llm-coop-envs: PettingZoo environments for spontaneous cooperation of competing agents"
AUTHORS = "The llm-coop-envs developers"
_ARXIV = re.compile(r"arXiv:? ?(\d{4}\.\d{4,5})")


class Paper(NamedTuple):
    """A paper.

    Attributes:
        short: its name in texts, such as `"Wu et al. 2024"`.
        full: its full reference.
        bibtex: its BibTeX entry.
        other: its arXiv number, by which a study may name it too; empty without one.
    """

    short: str
    full: str
    bibtex: str
    other: str = ""


WU_2024 = Paper(
    "Wu et al. 2024",
    "Zengqing Wu, Run Peng, Shuyuan Zheng, Qianying Liu, Xu Han, Brian I. Kwon, Makoto Onizuka, Shaojie Tang, Chuan "
    "Xiao (2024). Shall We Team Up: Exploring Spontaneous Cooperation of Competing LLM Agents. Findings of the "
    "Association for Computational Linguistics: EMNLP 2024, 5163-5186. arXiv 2402.12327.",
    """@inproceedings{wu2024team,
  title = {Shall We Team Up: Exploring Spontaneous Cooperation of Competing {LLM} Agents},
  author = {Wu, Zengqing and Peng, Run and Zheng, Shuyuan and Liu, Qianying and Han, Xu and Kwon, Brian I. and
            Onizuka, Makoto and Tang, Shaojie and Xiao, Chuan},
  booktitle = {Findings of the Association for Computational Linguistics: EMNLP 2024},
  year = {2024},
  pages = {5163--5186},
  doi = {10.18653/v1/2024.findings-emnlp.297}
}""",
    "2402.12327",
)
CALVANO_2020 = Paper(
    "Calvano et al. 2020",
    "Emilio Calvano, Giacomo Calzolari, Vincenzo Denicolò, Sergio Pastorello (2020). Artificial Intelligence, "
    "Algorithmic Pricing, and Collusion. American Economic Review 110(10), 3267-3297.",
    """@article{calvano2020artificial,
  title = {Artificial Intelligence, Algorithmic Pricing, and Collusion},
  author = {Calvano, Emilio and Calzolari, Giacomo and Denicol{\\`o}, Vincenzo and Pastorello, Sergio},
  journal = {American Economic Review},
  year = {2020},
  volume = {110},
  number = {10},
  pages = {3267--3297}
}""",
)
FISH_2024 = Paper(
    "Fish et al. 2024",
    "Sara Fish, Yannai A. Gonczarowski, Ran I. Shorrer (2024). Algorithmic Collusion by Large Language Models. arXiv "
    "2404.00806.",
    """@misc{fish2024algorithmic,
  title = {Algorithmic Collusion by Large Language Models},
  author = {Fish, Sara and Gonczarowski, Yannai A. and Shorrer, Ran I.},
  year = {2024},
  eprint = {2404.00806},
  archivePrefix = {arXiv}
}""",
    "2404.00806",
)
PAN_2024 = Paper(
    "Pan et al. 2024",
    "Pan et al. (2024). Very Large-Scale Multi-Agent Simulation in AgentScope. arXiv 2407.17789.",
    """@misc{pan2024very,
  title = {Very Large-Scale Multi-Agent Simulation in {AgentScope}},
  author = {Pan and others},
  year = {2024},
  eprint = {2407.17789},
  archivePrefix = {arXiv}
}""",
    "2407.17789",
)
PAPERS = (WU_2024, CALVANO_2020, FISH_2024, PAN_2024)


def software_entry() -> str:
    """The BibTeX entry of this software."""
    return f"""@software{{llm_coop_envs,
  title = {{{TITLE}}},
  author = {{{{{AUTHORS}}}}},
  version = {{{__version__}}}
}}"""


def named_papers(texts: Iterable[str]) -> list[Paper]:
    """The papers of `PAPERS` that some text names."""
    texts = list(texts)
    return [
        paper for paper in PAPERS if any(name and name in text for name in (paper.short, paper.other) for text in texts)
    ]


def entries(source: str, papers: Iterable[Paper] = ()) -> list[str]:
    """BibTeX entries of this software, of the papers that a study's `source` names, and of further papers.

    A paper that only its arXiv number names, as in "arXiv 2404.00806", gets an entry with nothing but the number.
    """
    cited = list(dict.fromkeys([*named_papers([source]), *papers]))
    cited_numbers = {paper.other for paper in cited}
    numbers = dict.fromkeys(number for number in _ARXIV.findall(source) if number not in cited_numbers)
    plain = [
        f"@misc{{arxiv{n.replace('.', '_')},\n  eprint = {{{n}}},\n  archivePrefix = {{arXiv}}\n}}" for n in numbers
    ]
    return [software_entry(), *(paper.bibtex for paper in cited), *plain]
