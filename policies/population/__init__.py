"""Populations: how many players have which attributes, who plays them, and what they are told about themselves."""

from llm_coop_envs.policies.population.population import People, Population
from llm_coop_envs.policies.population.reading import load_population, read_population

__all__ = ["People", "Population", "load_population", "read_population"]
