"""Models that run on this machine: `local:NAME` and `local:/path/to/model.gguf`, under llama.cpp.

`models` finds the weights, `server` is the process that serves them, `sharing` starts it, joins it and lets it go.
"""
