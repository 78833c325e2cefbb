"""Views of an environment for other libraries.

- `NumericView`: plain Box and Discrete, no text anywhere, for RL libraries.
- `TextView`: text in, text out, for frameworks that only handle strings.
- `SingleAgentView`: one seat as a Gymnasium environment, with policies in the other seats.
"""

from llm_coop_envs.wrappers.numeric import NumericView
from llm_coop_envs.wrappers.single_agent import SingleAgentView
from llm_coop_envs.wrappers.text import TextView

__all__ = ["NumericView", "SingleAgentView", "TextView"]
