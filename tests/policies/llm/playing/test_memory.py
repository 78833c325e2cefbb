import json

from llm_coop_envs.policies.llm.playing.memory import Memory, Note


def test_a_memory_survives_json():
    memory = Memory(
        plans=[Note(21, "Go up."), Note(41, "Stay.")],
        planned=41,
        feeling=Note(3, "Calm."),
        reasons=[Note(0, "33")],
        summary=Note(2, "Many said 20."),
        summarised=7,
    )
    back = Memory.from_json(json.loads(json.dumps(memory.to_json())))
    assert back == memory
    assert back.evaluation is None
    assert Memory.from_json(json.loads(json.dumps(Memory().to_json()))) == Memory()
