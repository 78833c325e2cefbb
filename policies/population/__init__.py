"""Populations: the distribution of players' attributes and policies, and the backgrounds that players are told."""

from llm_coop_envs.policies.population.population import People, Population
from llm_coop_envs.policies.population.reading import load_population, read_population

__all__ = ["People", "Population", "load_population", "read_population"]
