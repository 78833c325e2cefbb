"""The page of `llm-coop view`: runs to watch, read and steer."""
