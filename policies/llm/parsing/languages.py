"""Translating the words of other languages that mark, deny or take back an answer: the rules read English only.

No word in these tables is an English one. Names of options are left as they are (`keep`).
"""

from __future__ import annotations

import re
from collections.abc import Set

from llm_coop_envs.policies.llm.parsing.numberwords import WORDS
from llm_coop_envs.policies.llm.parsing.tokens import shorten

# English word: words of German, French, Spanish, Italian, Portuguese and Russian. A hyphen stands for a space.
_TABLE = """
answer: antwort réponse reponse respuesta risposta resposta ответ الجواب
price: preis prix precio prezzo preço preco цена цену السعر
number: zahl nombre chiffre número numero число numéro
choice: wahl choix elección eleccion scelta escolha выбор
decision: entscheidung décision decisión решение decisione decisão
exit: ausgang sortie salida uscita saída выход выходу выхода
move: zug mouvement movimiento ход mossa movimento
option: opción opcion opção вариант opzione
letter: buchstabe lettre letra буква буквой lettera
final: endgültig endgültige endgültiger finale définitive définitif definitiva definitivo окончательный окончательная
i: ich je yo я io eu
my: mein meine meiner meinen mon ma mia mio minha meu mi мой моя моё мое мою
choose: wähle nehme nenne verlange verlangen choisis prends choisirai dirais
choose: dis maintiens behalte оставляю выбираю называю беру scelgo escolho
i-choose: elijo escojo tomo propongo cobro digo mantengo prefiero
i-lower: bajo снижаю
lower: senke baisse 降低
raise: erhöhe augmente subo повышаю
remains: bleibt
would: würde
actually: fait
step: schritt
to-me: dirijo
set: setze setzen lege fixe устанавливаю ставлю fisso
i-set: fijo pongo
charge: cobrar facturer назначаю
go: gehe laufe vais иду двигаюсь бегу vado vou geh
i-go: voy vamos
stay: bleibe bleiben stehenbleiben reste rester quedarse quedo остаюсь стою resto fico
is: ist lautet est es é è это será sera está están liegt
not: nicht kein keine keinen keinesfalls niemals pas ne не jamais nunca ни não никогда
neither: weder
no: nein нет
but: sondern sino mais а но pero aber
or: oder ou или oppure
and: und et y и
between: zwischen entre между
from: von от
to: bis до zu zum nach vers à к auf
instead-of: statt anstatt вместо
instead: lieu lugar
wait: warte attends espera подожди
rather: doch lieber eher plutôt plutot лучше dicho besser
sorry: entschuldigung perdón perdon извините pardon desolé scusa
correction: korrektur corrección correccion исправление correzione
maybe: vielleicht quizás quizas возможно
because: weil denn parce perché poiché porque потому puisque da
therefore: daher deshalb somit donc entonces поэтому
full: voll überfüllt plein pleine bondé bondée saturé encombré encombrée lleno llena llenos abarrotada abarrotado
full: полон переполнен переполнена забит забита affollata affollato pieno piena lotada lotado cheia cheio
blocked: blockiert gesperrt besetzt verstopft bloqué bloquée bouché bouchée fermé fermée bloqueada bloqueado cerrada
blocked: bloccata bloccato chiusa bloqueada fechada закрыт закрыта заблокирован занят занято
last: letzte letzter letzten vorige dernier dernière último última прошлый прошлом прошлого scorso
round: runde tour ronda раунд раунде раунда
chose: wählte nannte verlangte nahm choisi elegí выбрал назвал
went: ging lief
rival: konkurrent konkurrenten gegner конкурента конкурент соперник concurrent competidor rivale
other: andere anderen anderer autre autres otro otra otros другой другие другого
mean: mittelwert durchschnitt moyenne promedio среднее
one: eins
at: en bei
decide: entscheide
for: für
please: bitte
closest: nächsten nächste nächster
the: la le les el il der das den dem
of: de del du des della
choose: biete tippe propose parie opte joue garde retiens mise выберу возьму назову предлагаю dico
choose: prendo proponho pego kiezen kies neem
is: beträgt wäre serait sería seria будет равна равен составляет
actually: finalement finalmente eigentlich tatsächlich infine
wait: attendez espere подождите стоп aspetta aspetti aguarde
therefore: darum folglich demnach ainsi alors luego portanto quindi perciò итак значит следовательно então
most: meisten plupart mayoría maggioranza maioria большинство
everyone: alle tous todos tutti все jeder chacun cada
run: laufen rennen gehen courent vont corren бегут идут corrono vanno correm vão
if: wenn falls sofern si если
although: obwohl obgleich quoique aunque хотя sebbene embora
against: gegen contre contra против
with: mit avec con com
there: dorthin dahin allí ahí туда là lì
far: weit lejos loin lontano longe далеко
too: trop demasiado troppo demais слишком
will: werde
i-choose: elegiré escogeré cobraré pondré fijaré tomaré iré
choose: choisirai prendrai fixerai sceglierò prenderò escolherei пойду поставлю wählen nehmen
charged: cobró cobraron поставили verlangten
this: diese dieser diesmal dieses cette ce этот этом эту esta este questo questa
rival: mitbewerber wettbewerber rivaux rivales rivali rivais соперники
"""
_CJK = {
    " last round ": "上一轮 上轮 上一回合 上回",
    " round ": "轮 回合",
    " final ": "最终 最后",
    " answer ": "答案 回答 答え 정답 답",
    " price ": "价格 価格 가격 价钱",
    " I price at ": "定价为 定价",
    " number ": "数字",
    " option ": "选项",
    " exit ": "出口",
    " letter ": "字母",
    " my ": "我的 私の",
    " I ": "我 私は",
    " choose ": "选择 选 挑",
    " choose": "を選びます を選ぶ にします にする",
    " set at ": "定为 设为 设定为 设置为 定在 设在 调整为 调到",
    " decide ": "决定",
    " cost ": "成本 コスト",
    " for ": "为了",
    " everyone ": "大家 每个人 所有人 みんな 全員",
    " most ": "大多数人 多数人 大部分人",
    " maybe ": "可能 也许 大概 たぶん",
    " if ": "如果 假如 要是 もし",
    " think ": "认为 觉得",
    " expect ": "估计 预计 预期 猜测",
    " last time ": "上次 之前 以前 前回",
    " go ": "走 去 往 前往 行きます",
    " is ": "是 为 は 应为",
    " rather ": "应该是 改为 改成",
    " actually ": "其实",
    " no wait ": "不对 等等 错了",
    " not ": "不选 不是 不去 不要 不",
    " but ": "而是 但是 但",
    " or ": "或者 或是 或 还是 または",
    " and ": "和 以及",
    " lower to ": "降到 降至",
    " to ": "涨到 到 向 朝 へ",
    " from ": "从",
    " keep ": "维持 保持",
    " between ": "之间",
    " because ": "因为 由于 鉴于 既然",
    " so ": "所以 因此 于是 那么 なので ので だから 그래서",
    " mean ": "平均数 平均值 平均 大约是",
    " rival ": "对手 对方 竞争对手 竞争者 相手 対戦相手 競合 ライバル",
    " others ": "其他人 他们",
    " dollars ": "元 美元 块 円",
    " left ": "左边 左侧 左面 左方 左 왼쪽",
    " right ": "右边 右侧 右面 右方 右 오른쪽",
    " down ": "下边 下面 下方 底部 下 아래",
    " up ": "上边 上面 上方 顶部 上 위",
    " stay ": "不动 停留 留在原地 原地",
    " next ": "下一",
    " ": "将 的 の を です に 吗 会 把 以上 以下 一下",
    "cannot": "无法 不能 抱歉",
}
_DIRECTIONS = """
left: links linke linken linker gauche izquierda izquierdo налево влево слева левый левую левому левым левом
left: левая sinistra esquerda
right: rechts rechte rechten rechter droite derecha derecho направо вправо справа правый правую правому правым правом
right: правая destra direita
down: unten runter hinunter abwärts untere unteren unterer bas abajo inferior вниз внизу нижний нижнему giù baixo
up: oben hinauf aufwärts obere oberen haut arriba вверх наверх наверху верхний верхнему cima
stay: bleiben stehenbleiben
"""
# What an exit is called where a direction of that name is not offered.
_SIDES = {"down": "bottom", "up": "top"}


def _parse_table(table: str) -> dict[str, str]:
    """English by foreign word, of a table with lines such as "price: preis prix"."""
    lines = (line.partition(": ") for line in table.strip().splitlines())
    return {word: english.replace("-", " ") for english, _, foreign in lines for word in foreign.split()}


_WORDS = {**_parse_table(_TABLE), **WORDS}
_DIRECTION_WORDS = _parse_table(_DIRECTIONS)
_SIGNS = {sign: english for english, signs in _CJK.items() for sign in signs.split()}
_SIGN = re.compile("|".join(sorted(map(re.escape, _SIGNS), key=len, reverse=True)))
_ASIAN = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_IS_ASIAN = re.compile(f"[{_ASIAN}]")
# Between signs of Asia and others: "选|7"
_SEAM = re.compile(f"(?<=[{_ASIAN}])(?=[0-9A-Za-z$€¥])|(?<=[0-9A-Za-z])(?=[{_ASIAN}])")
# "第 3 轮": round 3
_ORDINAL = re.compile(r"第 ?(\d{1,4}) ?(?:轮|回合)")
# "de 7 a 9"
_FROM_TO = re.compile(r"\b(?:de|с) (\d[\d.,]{0,12})(?: \w{1,6})? (?:a|à|до) (?=\d)", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
# "a la derecha"
_TO_THE = re.compile(r"\ba la\b", re.IGNORECASE)
# "siehe unten": no direction
_BELOW = re.compile(r"\b(?:weiter|siehe) unten\b|\bplus bas\b|\bmás abajo\b", re.IGNORECASE)
# "zu voll"
_TOO = re.compile(
    r"\bzu (?=(?:voll|weit|hoch|niedrig|teuer|billig|riskant|gefährlich|eng|lang|langsam|viel)\b)", re.IGNORECASE
)
# "therefore go i there", as German and Dutch order their words
# "wähle ich", but not "i choose i"
_VERB_FIRST = re.compile(r"(?<!\bi )\b(choose|go|lower|raise|stay|set|charge|run) i\b", re.IGNORECASE)
# "no voy": "no" is "not" before a verb
_NEGATED = re.compile(r"\bno (?:elijo|escojo|tomo|voy|quiero|fijo|es|(?=a la\b))", re.IGNORECASE)


def translate(text: str, keep: Set[str] = frozenset()) -> str:
    """Translate the words that the rules know into English.

    Args:
        text: the text.
        keep: words that are not translated, in small letters; directions are translated into those of them that are
            directions.
    """
    if _IS_ASIAN.search(text):
        text = _ORDINAL.sub(r" round \1 ", _SEAM.sub(" ", text))
        text = _SIGN.sub(lambda match: _direction(_SIGNS[match[0]], keep), text)
    text = _BELOW.sub("below", text)
    text = _TOO.sub("too ", text)
    text = _FROM_TO.sub(r"from \1 to ", _TO_THE.sub("to the", _NEGATED.sub("not ", text)))

    def translate_word(match: re.Match[str]) -> str:
        word = match[0].lower()
        if word in keep:
            return match[0]
        direction = _DIRECTION_WORDS.get(word)
        return _direction(direction, keep) if direction else _WORDS.get(word, match[0])

    return shorten(re.sub(" {2,}", " ", _VERB_FIRST.sub(r"i \1", _WORD.sub(translate_word, text))))


def translate_key(key: str) -> str:
    """Translate the words of an object's key into English."""
    return _WORD.sub(lambda match: _WORDS.get(match[0], match[0]), key)


def _direction(word: str, keep: Set[str]) -> str:
    """An English word; a direction in the words that are kept: "bottom" for "down" where exits are asked for."""
    name = word.strip()
    if name in keep:
        return word
    offered = (other for other in sorted(keep) if other == _SIDES.get(name) or _DIRECTION_WORDS.get(other) == name)
    return f" {next(offered, name)} "
