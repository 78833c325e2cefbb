import sys, time
from llm_coop_envs import kbc_v0, bertrand_v0, evacuation_v0
from llm_coop_envs.policies import play
from llm_coop_envs.policies.llm.policy import LLMPolicy
from llm_coop_envs.policies.llm.policy_settings import LLMSettings
from llm_coop_envs.policies.llm.scripted_answers import ScriptedChat
class Show(ScriptedChat):
    def __init__(self, show=()): super().__init__(); self.seen={}; self.show=show
    async def ask(self, key, request):
        r=await super().ask(key, request)
        if self.seen.setdefault(key.call,0) < 2 and key.call in self.show or (key.call in self.show and self.seen[key.call]==30):
            print(f"=== {key}\n{request.messages[-1].content}\n--> {r.text!r}\n")
        self.seen[key.call]+=1
        return r
def run(env, show=(), **kw):
    chat=Show(show); pol=LLMPolicy(chat, LLMSettings(model="scripted", **kw))
    t=time.time()
    tot=play(env, pol, seed=0, name="x/0")
    n=chat.requests
    print(env.metadata["name"], kw, n, "calls", round((time.time()-t)/n*1e6), "us/call", "flags", sum(bool(e.get("flags")) for e in env.events))
    print({k:{a:b for a,b in v.items() if b} for k,v in pol.counters.to_json().items()})
    return tot
if __name__=="__main__":
    pack=sys.argv[1] if len(sys.argv)>1 else "en-a"
    show=tuple(sys.argv[2].split(",")) if len(sys.argv)>2 else ()
    for answers in ("plain","json","reason"):
        kw=dict(pack=pack, answers=answers)
        run(kbc_v0.parallel_env(record=True), show, **kw)
        run(bertrand_v0.parallel_env(preset="team_up_linear", rounds=45, record=True), show, **kw)
        run(bertrand_v0.parallel_env(preset="calvano", talk=True, rounds=45, record=True), show, **kw)
        run(evacuation_v0.parallel_env(record=True, people=40), show, **kw)
        show=()
