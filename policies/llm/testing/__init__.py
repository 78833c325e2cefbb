"""A scripted server that speaks OpenAI's chat format on this machine. It is not a language model.

Its answers come from a function of the request, so that clients, journals and whole studies can be tested without
a model, a key or a network, with faults of every kind injected. `python -m llm_coop_envs.policies.llm.testing` runs it.
"""
