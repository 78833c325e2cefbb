import re
import shutil
from pathlib import Path

import jinja2.meta
import pytest
import yaml
from llm_chats import run

import llm_coop_envs
from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.core.wording import read_templates, template_environment
from llm_coop_envs.errors import WordingError
from llm_coop_envs.policies.llm.playing.calls import CALLS, COMMON_TEMPLATES, calls_of
from llm_coop_envs.policies.llm.playing.packs import HOME, Pack, load_pack, shipped_packs, values_for

PACKS = shipped_packs()

# What each call shows, from the published protocol: Wu et al. 2024 and the authors' code, and for repeated number
# contests Pan et al. 2024. Written here a second time, so that a change of the calls is a change of two places.
KBC_RULES = " ".join(
    [
        "me players low high integer ratio offset winner_rule tolerance",
        "reward_rule unit currency groups group repeated round past",
    ]
)
PUBLISHED = {
    "kbc/talk": f"{KBC_RULES} turns together turn heard heard_left_out summary message_length",
    "kbc/choose": f"{KBC_RULES} turns together heard heard_left_out summary reasons number_first",
    "bertrand/talk": (
        "me rivals cost round history bins bin_size plan said said_left_out exchange exchanges message_length"
    ),
    "bertrand/plan": "me rivals cost round history bins bin_size plans",
    "bertrand/price": (
        "me rivals cost round history bins bin_size plan said said_left_out exchanges floor cap choices"
    ),
    "evacuation/talk": "rows cols rounds exit_names exits heard heard_left_out feeling message_length",
    "evacuation/panic": "rows cols rounds exit_names nearest_distance around around_kind",
    "evacuation/evaluate": "rows cols rounds exit_names feeling exits",
    "evacuation/exit": (
        "rows cols rounds exit_names feeling evaluation heard heard_left_out may_talk past_exits target"
    ),
    "evacuation/move": "rows cols rounds row col previous target_cell direction options together",
}


def used(folder, name):
    """All names a template and its parts use."""
    environment = template_environment(folder)
    environment.filters |= dict.fromkeys(("word", "price", "spoken", "listed"), str)
    trees = read_templates(environment, folder)

    def names(template):
        found = set(jinja2.meta.find_undeclared_variables(trees[template]))
        for part in jinja2.meta.find_referenced_templates(trees[template]):
            found |= names(part)
        return found

    # Names that a template sets for its parts are its own.
    return names(name) - {"alone"}


def test_three_packs_are_shipped():
    assert PACKS == ("de-a", "en-a", "en-b")
    for name in PACKS:
        pack = load_pack(name)
        assert pack.manifest.name == name
        assert pack.manifest.language == name[:2]
        assert pack.manifest.scenarios == ("kbc", "bertrand", "evacuation")
        assert pack.describe() == {
            "name": name,
            "language": name[:2],
            "paraphrase": name[-1],
            "version": 2,
            "digest": pack.digest,
        }
        assert re.fullmatch("[0-9a-f]{16}", pack.digest)
    assert len({load_pack(name).digest for name in PACKS}) == len(PACKS)


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("call", PUBLISHED)
def test_each_call_shows_the_published_slots_and_nothing_else(pack, call):
    shown = used(HOME / pack, f"{call}.jinja") - {"answer_as", "persona"}
    assert shown == set(PUBLISHED[call].split())


def test_the_table_above_has_every_call():
    assert set(PUBLISHED) == {f"{scenario}/{name}" for scenario, name in CALLS}
    for (scenario, name), call in CALLS.items():
        listed = set(PUBLISHED[f"{scenario}/{name}"].split())
        assert listed <= call.names
        # What may give way without a word on it is not named in a template.
        assert call.names - listed <= {"answer_as", "persona", *(f"{one}_left_out" for one, _ in call.shrinks)}


@pytest.mark.parametrize("pack", PACKS)
def test_every_call_asks_for_the_persona_but_the_move(pack):
    for call in CALLS.values():
        names = used(HOME / pack, call.template)
        assert "answer_as" in names
        assert ("persona" in names) == (call.name != "move")


def test_values_for_a_call_are_cut_to_what_it_may_show():
    call = CALLS["evacuation", "panic"]
    assert values_for(call, {"around": 3, "exits": (), "secret": 1, "persona": ""}) == {"around": 3, "persona": ""}


# No text tells a player what is studied.

DOCS = Path(llm_coop_envs.__file__).parents[1] / "docs"


def stems(file, block):
    text = (DOCS / file).read_text(encoding="utf-8")
    return re.search(rf"```{block}\n(.*?)\n```", text, re.DOTALL)[1].split("\n")


STEMS = [*stems("development.md", "hint-words"), *stems("llm_policies.md", "hint-words-de")]
HINTS = re.compile("|".join(re.escape(stem) for stem in STEMS), re.IGNORECASE)


@pytest.mark.parametrize("path", sorted(HOME.rglob("*.jinja")), ids=lambda p: p.relative_to(HOME).as_posix())
def test_no_template_holds_a_hint_word(path):
    text = re.sub(r"\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    # Paths of parts are not shown.
    text = re.sub(r"\{% include .*? %\}", "", text)
    assert not HINTS.search(text), HINTS.search(text)


@pytest.mark.parametrize("pack", PACKS)
def test_no_persona_holds_a_hint_word_but_explicit_instructions(pack):
    loaded = load_pack(pack)
    for name, persona in loaded.personas.items():
        texts = " ".join(persona.texts.values())
        if persona.instruction:
            assert HINTS.search(texts), name
        else:
            assert not HINTS.search(texts), HINTS.search(texts)
    assert not HINTS.search(" ".join(loaded.traits.values()))
    assert [name for name, persona in loaded.personas.items() if persona.instruction] == ["explicit_cooperation"]


@pytest.mark.parametrize("pack", PACKS)
def test_no_prompt_and_no_scripted_answer_holds_a_hint_word(pack):
    envs = (
        kbc_v0.parallel_env(players=4),
        bertrand_v0.parallel_env(preset="team_up", rounds=22),
        evacuation_v0.parallel_env(preset="small", people=15, rounds=5),
    )
    for env in envs:
        _, chat = run(env, pack=pack)
        for _, request, reply in chat.log:
            for text in (*(message.content for message in request.messages), reply.text):
                assert not HINTS.search(text), text


# A pack of one's own.


@pytest.fixture
def own(tmp_path):
    """A copy of a shipped pack."""
    return Path(shutil.copytree(HOME / "en-a", tmp_path / "own"))


def test_a_folder_is_a_pack(own):
    pack = load_pack(str(own))
    assert pack.digest == load_pack("en-a").digest
    (own / "kbc" / "talk.jinja").write_text("Speak, {{ me }}!", encoding="utf-8")
    changed = Pack(own)
    assert changed.digest != pack.digest
    assert changed.render("kbc/talk.jinja", {"me": "player_0"}) == "Speak, player_0!"


def test_the_digest_depends_on_names_and_on_every_byte(own):
    before = Pack(own).digest
    (own / "kbc" / "_rules.jinja").rename(own / "kbc" / "_other.jinja")
    for name in ("talk", "choose"):
        path = own / "kbc" / f"{name}.jinja"
        path.write_text(path.read_text().replace("_rules", "_other"))
    renamed = Pack(own).digest
    assert renamed != before
    personas = own / "personas.yaml"
    personas.write_text(personas.read_text() + "# a remark\n")
    assert Pack(own).digest not in (before, renamed)


def test_a_pack_may_cover_one_scenario(own):
    shutil.rmtree(own / "bertrand")
    shutil.rmtree(own / "evacuation")
    manifest = yaml.safe_load((own / "manifest.yaml").read_text())
    (own / "manifest.yaml").write_text(yaml.safe_dump({**manifest, "scenarios": ["kbc"]}))
    assert Pack(own).manifest.scenarios == ("kbc",)


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
        ("kbc/talk.jinja", "kbc/_talk.jinja", "kbc/_nowhere.jinja", "includes kbc/_nowhere.jinja"),
        ("manifest.yaml", "language: en", "", "the field 'language' is missing or no str"),
        ("manifest.yaml", "version: 2", "version: one", "the field 'version' is missing or no int"),
        ("manifest.yaml", "version: 2", "version: true", "the field 'version' is missing or no int"),
        ("manifest.yaml", "paraphrase: a", "paraphrase: a\nlanguag: en", "there is no field 'languag'; did you mean"),
        ("manifest.yaml", "[kbc,", "[kcb,", "there is no scenario 'kcb'; did you mean 'kbc'"),
        ("manifest.yaml", "name: en-a", "name: [", r"manifest\.yaml, line \d+: is no YAML"),
        ("manifest.yaml", "name: en-a", "- a", r"manifest\.yaml.*is no YAML"),
        ("personas.yaml", "traits:", "trait:", "must hold 'personas' and 'traits'"),
        ("personas.yaml", "  strong:", "  big:", "'traits' must hold a text for each of strong"),
        ("personas.yaml", "  strong: You are strong and in good shape.", "  strong: ''", "a text that is not empty"),
        ("personas.yaml", "    instruction: true", "    instruction: 1", "instruction must be true or false"),
        (
            "personas.yaml",
            "    any: You are an ordinary person.",
            "    kcb: x",
            "there is no scenario 'kcb'; did you mean",
        ),
        (
            "personas.yaml",
            "      choose: Cooperate",
            "      chose: Cooperate",
            "there is no call 'chose'; did you mean",
        ),
        ("personas.yaml", "    any: You are an ordinary person.", "    any: 3", "must be a text, or texts by call"),
        ("personas.yaml", "    any: You are an ordinary person.", "    kbc: {talk: ''}", "a text that is not empty"),
        (
            "personas.yaml",
            "  neutral:\n    any: You are an ordinary person.",
            "  neutral: x",
            "must hold texts by scenario",
        ),
    ],
)
def test_a_pack_with_a_fault_is_refused(own, file, old, new, words):
    path = own / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(WordingError, match=words):
        Pack(own)


@pytest.mark.parametrize("name", [call.template for call in calls_of("bertrand")] + list(COMMON_TEMPLATES))
def test_a_missing_template_is_named(own, name):
    (own / name).unlink()
    with pytest.raises(WordingError, match=f"the template {re.escape(name)} is missing"):
        Pack(own)


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
        Pack(own).render("kbc/talk.jinja", {"players": 0})
    with pytest.raises(WordingError, match=r"talk\.jinja: 'players' is undefined"):
        Pack(own).render("kbc/talk.jinja", {})


def test_no_gap_is_left_where_a_paragraph_is_missing(own):
    (own / "kbc" / "talk.jinja").write_text("\n\nA\n{% if me %}\n\n{% endif %}\n\n\n\nB\n\n")
    assert Pack(own).render("kbc/talk.jinja", {"me": 1}) == "A\n\nB"
