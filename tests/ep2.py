from ep import *
for pack in ("en-b","de-a"):
    run(kbc_v0.parallel_env(record=True), pack=pack)
    run(kbc_v0.parallel_env(record=True,preset="half_plus_five"), pack=pack, answers="json")
    run(bertrand_v0.parallel_env(preset="team_up_linear", rounds=45, record=True), pack=pack, answers="reason")
    run(bertrand_v0.parallel_env(preset="calvano", talk=True, rounds=25, record=True), pack=pack)
    run(evacuation_v0.parallel_env(record=True, people=40), pack=pack)
    run(evacuation_v0.parallel_env(record=True, people=40, engine="simultaneous"), pack=pack, answers="json")
    run(evacuation_v0.parallel_env(record=True, people=40, control="exit"), pack=pack, answers="reason")
