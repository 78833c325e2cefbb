import json

from llm_coop_envs.policies.llm.playing.memory import Memory, Note


def test_a_memory_survives_json():
    memory = Memory(
        notes={"plan": [Note(21, "Go up."), Note(41, "Stay.")], "panic": [Note(3, "Calm.")]},
        last_asked={"plan": 41},
        summary=Note(2, "Many said 20."),
        summarised=7,
    )
    back = Memory.from_json(json.loads(json.dumps(memory.to_json())))
    assert back == memory
    assert Memory.from_json(json.loads(json.dumps(Memory().to_json()))) == Memory()


def test_notes_are_found_by_kind_and_round():
    memory = Memory()
    assert memory.last("plan") is None
    assert memory.latest("plan", 3) == ()
    for number in range(5):
        memory.write("plan", Note(number, f"plan {number}"), 3)
    memory.write("panic", Note(2, "Calm."))
    assert [note.round for note in memory.notes["plan"]] == [2, 3, 4]
    assert [note.round for note in memory.latest("plan", 2)] == [3, 4]
    assert memory.latest("plan", 0) == ()
    assert memory.last("plan").text == "plan 4"
    assert memory.last("panic", 2).text == "Calm."
    assert memory.last("panic", 3) is None


def test_what_is_too_old_is_forgotten_with_the_summary_of_it():
    memory = Memory(last_asked={"plan": 4}, summary=Note(4, "Much was said."), summarised=9)
    for number in range(5):
        memory.write("plan", Note(number, "x"))
    memory.write("panic", Note(1, "Calm."))
    memory.forget(3)
    assert memory == Memory(notes={"plan": [Note(3, "x"), Note(4, "x")]}, last_asked={"plan": 4})


def test_the_latest_note_is_kept_even_where_none_are_shown():
    memory = Memory()
    for number in range(3):
        memory.write("plan", Note(number, "x"), 0)
    assert [note.round for note in memory.notes["plan"]] == [2]
