import hashlib
import re
from importlib.resources import files

import jinja2.meta
import pytest
from own_pack import COMPLETE, SCENARIOS, copy_pack

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.errors import SettingsError, WordingError
from llm_coop_envs.interface.wording import read_templates, template_environment
from llm_coop_envs.policies.llm.playing.calls import workflow_class
from llm_coop_envs.policies.llm.playing.packs import COMMON_TEMPLATES, HOME, Pack, load_pack, shipped_packs

PACKS = shipped_packs()
CALLS = {f"{name}/{call.name}": call for name in SCENARIOS for call in workflow_class(find_scenario(name)).calls}


def holds(pack, call):
    """Whether a pack says a call in words of its own."""
    return (load_pack(pack).folder_for(call.partition("/")[0]) / CALLS[call].template).is_file()


OWN_CALLS = [(pack, call) for pack in PACKS for call in CALLS if holds(pack, call)]

# Whoever changes words raises the pack's version and adds its hash.
WORDS = {
    ("de-a", 6): "538e71da081ca743",
    ("en-a", 6): "96e47caf9bd9878d",
    ("en-b", 6): "b883bcccd72d7d03",
    ("fish", 1): "9a3edd521c86afe8",
    ("de-a", 7): "e0a79496827d52ef",
    ("en-a", 7): "47e9251c554b9d0c",
    ("en-b", 7): "3d43335291ff80b0",
    ("de-a", 8): "6e7ed97dfb915b8c",
    ("en-a", 8): "aff99d6f28e1758f",
    ("en-b", 8): "ea905be3be13986a",
    ("de-a", 9): "48333ed090a801b2",
    ("en-a", 9): "d67ff6d80bcb6f15",
    ("en-b", 9): "9404e0710b2e48ae",
    ("de-a", 10): "f033f11b8dfd1431",
    ("en-a", 10): "8b5ce6db3dc41ac2",
    ("en-b", 10): "580cc20b388132ab",
    ("de-a", 11): "1cf96b2204dd065f",
    ("en-a", 11): "2d0c36beecb1acfa",
    ("en-b", 11): "b64ec77c8a8dfe5c",
    ("de-a", 12): "e04e185e8bb3bcb5",
    ("en-a", 12): "d5d293a7c692eff3",
    ("en-b", 12): "c9e8c9ebf30854e1",
    ("fish", 2): "96b2767ca15c1354",
    ("de-a", 13): "0662c8429719ef89",
    ("en-a", 13): "88fea0096d27aa77",
    ("en-b", 13): "b8f7eb3e4786586a",
    ("fish", 3): "e0b54e0eeb1e1e5b",
}

# What each call shows, from the published protocol: Wu et al. 2024 and the authors' code, and for repeated number
# contests Pan et al. 2024. Written here a second time, so that a change of the calls is a change of two places.
KBC_RULES = " ".join(
    [
        "me players low high integer ratio offset winner_rule tolerance",
        "reward_rule unit currency groups group repeated round past informed memory",
    ]
)
HEARING = "turns together audience hearers announces announcers statistic opponents"
FIRM = (
    "me rivals seen cost whole_profits round history bins bin_size in_turn rematched rival_costs demand_rule last_round"
)
ROOM = "rows cols rounds exit_names strong confident helpful summarised"
SHARED = {"answer_as", "answer_words", "persona"}
PUBLISHED = {
    "kbc/talk": f"{KBC_RULES} {HEARING} turn heard heard_left_out summary message_length",
    "kbc/plan": f"{KBC_RULES} {HEARING} heard heard_left_out summary reasons",
    "kbc/choose": (
        f"{KBC_RULES} {HEARING} heard heard_left_out summary reasons number_first number_only separate_plan plan"
    ),
    "bertrand/talk": f"{FIRM} prior plan said said_left_out exchange exchanges message_length",
    "bertrand/plan": f"{FIRM} plans",
    "bertrand/price": f"{FIRM} prior plan said said_left_out exchanges floor cap choices fixed_price",
    "bertrand/period": f"{FIRM} prior said said_left_out exchanges floor cap choices fixed_price own_plans"
    " own_insights",
    "bertrand/tool": f"{FIRM} prior plan said said_left_out exchanges options left",
    "bertrand/note": f"{FIRM} prior plan",
    "evacuation/talk": f"{ROOM} informed exits counts_self counts_desks heard heard_left_out feeling message_length",
    "evacuation/panic": f"{ROOM} informed nearest_distance around around_kind counts_self moved",
    "evacuation/evaluate": f"{ROOM} informed feeling exits counts_self counts_desks",
    "evacuation/exit": f"{ROOM} memory feeling evaluation heard heard_left_out may_talk past_exits target",
    "evacuation/move": "memory rows cols rounds row col previous target_cell direction options together diagonals",
}


def used(folder, name):
    """All names a template and its parts use, but those that the parts set for themselves."""
    trees = read_templates(template_environment(folder), folder)

    def names(template):
        found = set(jinja2.meta.find_undeclared_variables(trees[template]))
        for part in jinja2.meta.find_referenced_templates(trees[template]):
            found |= names(part)
        return found

    return names(name) - {"alone"}


def test_four_packs_are_shipped():
    assert PACKS == ("de-a", "en-a", "en-b", "fish")
    assert COMPLETE == ("de-a", "en-a", "en-b")
    for name in COMPLETE:
        pack = load_pack(name)
        assert pack.manifest.name == name
        assert pack.manifest.language == name[:2]
        assert {prompts.scenario for prompts in pack.all_prompts()} >= set(SCENARIOS)
        assert pack.describe() == {
            "name": name,
            "language": name[:2],
            "paraphrase": name[-1],
            "version": 13,
            "digest": pack.digest(),
        }
        assert re.fullmatch("[0-9a-f]{16}", pack.digest())
    assert len({load_pack(name).digest() for name in PACKS}) == len(PACKS)
    assert [call for call in OWN_CALLS if call[0] in COMPLETE] == [(name, call) for name in COMPLETE for call in CALLS]


def test_the_pack_of_fish_et_al_has_their_question_and_else_the_words_of_its_base():
    fish, base = load_pack("fish"), load_pack("en-a")
    assert [call for pack, call in OWN_CALLS if pack == "fish"] == ["bertrand/period"]
    described = fish.describe(["bertrand"])
    assert (described["version"], described["base"]) == (3, "en-a")
    assert fish.digest(["bertrand"]) != fish.digest(["kbc"]) != base.digest(["kbc"])
    assert fish.prompts("kbc") is base.prompts("kbc")
    assert fish.prompts("bertrand", generic=True) is base.prompts("bertrand", generic=True)
    assert fish.prompts("bertrand").personas == base.prompts("bertrand").personas
    assert {one.scenario for one in fish.all_prompts()} >= set(SCENARIOS)


def test_a_pack_of_ones_own_may_name_a_base(tmp_path):
    own = tmp_path / "mine"
    (own / "kbc").mkdir(parents=True)
    manifest = "name: mine\nlanguage: de\nparaphrase: mine\nversion: 1\nbase: de-a\n"
    (own / "manifest.yaml").write_text(manifest, encoding="utf-8")
    (own / "kbc" / "talk.jinja").write_text("Sag etwas, {{ me }}!", encoding="utf-8")
    (own / "personas.yaml").write_text("neutral: Du bist irgendwer.\n", encoding="utf-8")
    pack, base = Pack(own), load_pack("de-a")
    assert pack.prompts("kbc").templates.render("talk.jinja", {"me": "player_0"}) == "Sag etwas, player_0!"
    assert pack.prompts("evacuation").word("left") == base.prompts("evacuation").word("left") != "left"
    personas = pack.prompts("kbc").personas
    assert personas["neutral"].text("talk") == "Du bist irgendwer."
    assert personas["agreeable"] == base.prompts("kbc").personas["agreeable"]
    # The base's words count for the hash too.
    before = pack.digest(["kbc"])
    (own / "manifest.yaml").write_text(manifest.replace("base: de-a", "base: en-b"), encoding="utf-8")
    assert Pack(own).digest(["kbc"]) != before
    (own / "manifest.yaml").write_text(manifest.replace("base: de-a", "base: fr-a"), encoding="utf-8")
    with pytest.raises(WordingError, match="base 'fr-a' is no shipped pack; "):
        Pack(own)


def words(name):
    """A hash of all that a pack and the texts of the environments say in it: every file but the manifest."""
    rooms = [find_scenario(scenario).env_class.home for scenario in SCENARIOS]
    shared = [files(f"llm_coop_envs.{room}") for room in ("treatments", "mechanisms")]
    folders = [HOME / name, *(room / "prompts" / name for room in (*shared, *rooms))]
    found = hashlib.sha256()
    for folder in folders:
        for path in sorted(one for one in folder.rglob("*.*") if one.is_file() and one.name != "manifest.yaml"):
            found.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


@pytest.mark.parametrize("pack", PACKS)
def test_a_version_stands_for_the_words(pack):
    version = load_pack(pack).manifest.version
    assert WORDS.get((pack, version)) == words(pack), (
        f"the words of {pack} have changed: raise `version` in its manifest, and put the hash of the new version here; "
        "what stands here already is never changed"
    )


@pytest.mark.parametrize(("pack", "call"), OWN_CALLS)
def test_each_call_shows_the_published_slots_and_nothing_else(pack, call):
    scenario, _, name = call.partition("/")
    shown = used(load_pack(pack).folder_for(scenario), f"{name}.jinja") - SHARED
    assert shown == set(PUBLISHED[call].split())


def test_the_table_above_has_every_call():
    assert set(PUBLISHED) == set(CALLS)
    for name, call in CALLS.items():
        listed = set(PUBLISHED[name].split())
        assert listed <= call.names
        # What may give way without a word on it is not named in a template.
        assert call.names - listed <= {*SHARED, *(f"{one}_left_out" for one, _ in call.shrinks)}


@pytest.mark.parametrize(("pack", "name"), OWN_CALLS)
def test_every_call_asks_for_the_persona_but_the_move(pack, name):
    names = used(load_pack(pack).folder_for(name.partition("/")[0]), CALLS[name].template)
    assert "answer_as" in names
    assert ("persona" in names) == (name != "evacuation/move")


@pytest.mark.parametrize("pack", COMPLETE)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_environments_text_and_the_calls_share_their_parts(pack, scenario):
    folder = load_pack(pack).folder_for(scenario)
    trees = read_templates(template_environment(folder), folder)
    parts = {name for name in trees if name.startswith("_")}
    shared = set(jinja2.meta.find_referenced_templates(trees["observation.jinja"]))
    assert shared <= parts
    asked = {part for call in CALLS.values() if call.template in trees for part in included(trees, call.template)}
    assert shared <= asked
    assert len(shared) >= 5
    assert parts == shared | asked


def included(trees, name):
    found = set(jinja2.meta.find_referenced_templates(trees[name]))
    return found | {part for one in found for part in included(trees, one)}


def test_values_for_a_call_are_cut_to_what_it_may_show():
    call = CALLS["evacuation/panic"]
    assert call.values({"around": 3, "exits": (), "secret": 1, "persona": ""}) == {"around": 3, "persona": ""}


# A pack of one's own.


@pytest.fixture
def own(tmp_path):
    """A copy of a shipped pack."""
    return copy_pack(tmp_path / "own")


def load_all(folder):
    pack = Pack(folder)
    pack.all_prompts()
    return pack


def test_a_folder_is_a_pack(own):
    pack = load_pack(str(own))
    assert pack.digest(SCENARIOS) == load_pack("en-a").digest(SCENARIOS)
    (own / "kbc" / "talk.jinja").write_text("Speak, {{ me }}!", encoding="utf-8")
    changed = Pack(own)
    assert changed.digest(SCENARIOS) != pack.digest(["bertrand"])
    assert changed.digest(["bertrand"]) == load_pack("en-a").digest(["bertrand"])
    assert changed.prompts("kbc").templates.render("talk.jinja", {"me": "player_0"}) == "Speak, player_0!"


def test_the_digest_depends_on_names_and_on_every_byte(own):
    before = Pack(own).digest()
    (own / "kbc" / "_rules.jinja").rename(own / "kbc" / "_other.jinja")
    for name in ("talk", "_known", "observation"):
        path = own / "kbc" / f"{name}.jinja"
        path.write_text(path.read_text().replace("_rules", "_other"))
    renamed = load_all(own).digest()
    assert renamed != before
    for file in ("personas.yaml", "kbc/personas.yaml"):
        known = Pack(own).digest()
        personas = own / file
        personas.write_text(personas.read_text() + "# a remark\n")
        assert Pack(own).digest() not in (before, renamed, known)


def test_a_pack_may_cover_one_scenario(tmp_path):
    own = copy_pack(tmp_path / "own", scenarios=["kbc"])
    assert "kbc" in [prompts.scenario for prompts in Pack(own).all_prompts()]
    with pytest.raises(SettingsError, match="has no templates for bertrand"):
        Pack(own).prompts("bertrand")


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("kbc/talk.jinja", "{{ persona }}", "{{ secret }}", r"talk\.jinja: uses secret, which no player may know"),
        ("bertrand/plan.jinja", "{{ me }}", "{{ said }}", r"plan\.jinja: uses said, which no player may know"),
        (
            "evacuation/_scene.jinja",
            "{{ rows }}",
            "{{ exits }}",
            r"_scene\.jinja: uses exits, which no player may know",
        ),
        ("bertrand/_plan.jinja", "plan.text | quoted", "plan.text", "without putting it in quotation marks"),
        ("kbc/talk.jinja", "{% if persona %}", "{% if %}", r"talk\.jinja, line \d+"),
        ("kbc/talk.jinja", "_talk.jinja", "_nowhere.jinja", "includes _nowhere.jinja"),
        ("manifest.yaml", "language: en", "", "the field 'language' is missing or no str"),
        ("manifest.yaml", "version: 13", "version: one", "the field 'version' is missing or no int"),
        ("manifest.yaml", "version: 13", "version: true", "the field 'version' is missing or no int"),
        ("manifest.yaml", "paraphrase: a", "paraphrase: a\nlanguag: en", "there is no field 'languag'; did you mean"),
        ("manifest.yaml", "name: en-a", "name: [", r"manifest\.yaml, line \d+: is no YAML"),
        ("manifest.yaml", "name: en-a", "- a", r"manifest\.yaml.*is no YAML"),
        ("personas.yaml", "neutral: ", "neutral: '' #", r"persona 'neutral', any: must be a text that is not empty"),
        ("personas.yaml", "neutral: ", "neutral: 3 #", "persona 'neutral' must be a text, or texts by call"),
        ("personas.yaml", "neutral: ", "- ", "is no YAML"),
        ("personas.yaml", "neutral: ", "neutral: {talk: x} #", "there is no call 'talk'"),
        ("kbc/personas.yaml", "  instruction: true", "  instruction: 1", "instruction must be true or false"),
        (
            "kbc/personas.yaml",
            "choose: Cooperate",
            "chose: Cooperate",
            "no call 'chose'; did you mean 'choose'",
        ),
        ("kbc/personas.yaml", "choose: Cooperate", "choose: 3 #", "must be a text that is not empty"),
        ("bertrand/personas.yaml", "explore: ", "explore: [a] #", "must be a text, or texts by call"),
    ],
)
def test_a_pack_with_a_fault_is_refused(own, file, old, new, words):
    path = own / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(WordingError, match=words):
        load_all(own)


def test_translations_that_are_none_are_refused(own):
    for text, words in (("[", "is no JSON"), ("[1]", "must hold texts by name"), ('{"left": 3}', "must hold texts")):
        (own / "evacuation" / "words.json").write_text(text)
        with pytest.raises(WordingError, match=words):
            load_all(own)


BERTRAND = [f"bertrand/{call.template}" for name, call in CALLS.items() if name.startswith("bertrand")]


@pytest.mark.parametrize("name", [*BERTRAND, *COMMON_TEMPLATES])
def test_a_missing_template_is_named(own, name):
    (own / name).unlink()
    with pytest.raises(WordingError, match=f"the template {re.escape(name.rpartition('/')[2])} is missing"):
        load_all(own)


def test_missing_files_and_packs_are_named(own, tmp_path):
    (own / "personas.yaml").unlink()
    with pytest.raises(WordingError, match=r"personas\.yaml: cannot be read"):
        Pack(own)
    (own / "manifest.yaml").write_bytes(b"\xff")
    with pytest.raises(WordingError, match="is not UTF-8 text"):
        Pack(own)
    with pytest.raises(WordingError, match="neither a shipped pack nor a folder that exists; did you mean 'en-a'"):
        load_pack("en_a")
    with pytest.raises(WordingError, match=r"manifest\.yaml: cannot be read"):
        load_pack(str(tmp_path))
    (own / "manifest.yaml").write_text("[]")
    with pytest.raises(WordingError, match="must hold name, language"):
        Pack(own)


def test_a_template_that_fails_says_where(own):
    (own / "kbc" / "talk.jinja").write_text("{{ 1 // players }}")
    with pytest.raises(WordingError, match=r"talk\.jinja: integer division"):
        Pack(own).prompts("kbc").templates.render("talk.jinja", {"players": 0})
    with pytest.raises(WordingError, match=r"talk\.jinja: 'players' is undefined"):
        Pack(own).prompts("kbc").templates.render("talk.jinja", {})


def test_no_gap_is_left_where_a_paragraph_is_missing(own):
    (own / "kbc" / "talk.jinja").write_text("\n\nA\n{% if me %}\n\n{% endif %}\n\n\n\nB\n\n")
    assert Pack(own).prompts("kbc").templates.render("talk.jinja", {"me": 1}) == "A\n\nB"
