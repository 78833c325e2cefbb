"""`python -m llm_coop_envs` is the command `llm-coop`."""

from llm_coop_envs.cli.main import main

if __name__ == "__main__":
    main()
