import asyncio, time, sys, cProfile, pstats
import numpy as np
from llm_coop_envs import kbc_v0, bertrand_v0, evacuation_v0
from llm_coop_envs.core.policy import Request, Episode
from llm_coop_envs.policies import play
from llm_coop_envs.policies.llm.policy import LLMPolicy
from llm_coop_envs.policies.llm.policy_settings import LLMSettings
from llm_coop_envs.policies.llm.scripted_answers import ScriptedChat
class Rec(ScriptedChat):
    def __init__(self): super().__init__(); self.answers={}
    async def ask(self,key,request):
        r=self.answers.get((key.agent,key.step,key.call))
        if r is None:
            r=self.answers[key.agent,key.step,key.call]=await super().ask(key,request)
        return r
class Tee(LLMPolicy):
    def begin(self, ep): super().begin(ep); self.log=[]
    async def act(self, reqs):
        self.log.append(list(reqs)); return await super().act(reqs)
def measure(env, prof=False):
    chat=Rec(); pol=Tee(chat, LLMSettings(model="scripted"))
    play(env,pol,seed=0,name="x")
    log=pol.log; n=len(chat.answers)
    p2=LLMPolicy(chat, LLMSettings(model="scripted")); p2.begin(pol.episode)
    async def go():
        for reqs in log: await p2.act(reqs)
    pr=cProfile.Profile()
    if prof: pr.enable()
    best=9e9
    for _ in range(1 if prof else 15):
        p2.begin(pol.episode)
        t=time.process_time(); asyncio.run(go()); best=min(best,time.process_time()-t)
    dt=best
    if prof: pr.disable(); pstats.Stats(pr).sort_stats("tottime").print_stats(18)
    print(env.metadata["name"], n, f"{dt/n*1e6:.0f} us per call")
prof=len(sys.argv)>1
for _ in range(1):
    measure(kbc_v0.parallel_env(record=True),prof)
    measure(bertrand_v0.parallel_env(preset="team_up_linear", rounds=60, record=True),prof)
    measure(evacuation_v0.parallel_env(record=True, people=60),prof)
