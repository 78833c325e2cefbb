"""Deep reinforcement learning: one small network for all players, trained with stable-baselines3.

    from llm_coop_envs.baselines.deep.settings import TrainSettings
    from llm_coop_envs.baselines.deep.train import train            # needs the extra `sb3`
    train(TrainSettings(env=NAME, settings={"talk": False}), Path("runs/ppo"))   # NAME: any scenario's

The same as `llm-coop train`. `rows` plays several copies of an environment as one batch (NumPy only), `vecenv` makes
it an environment of stable-baselines3. A trained policy is a file of plain numbers (`network`) that plays in any seat
(`player`) without torch; `shipped` are those that come with the package.
"""
