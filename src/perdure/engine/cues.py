"""Cues: words by which a sentence shows what it is: a rule, a question, a decision, a promise, a deferral, small talk.

English, German, French and Spanish, and what is common in Chinese, Japanese, Korean, Russian, Portuguese and Italian. A cue
is a hint, not a proof: it moves a sentence up, and never removes the message it stands in.
"""

from __future__ import annotations

import re


class Cue:
    """Any of some words, found as whole words in any case."""

    __slots__ = ("_pattern",)

    def __init__(self, *parts: str) -> None:
        # Scripts without spaces have no word edges, so edges count for Latin letters only. Matching lower case against
        # lower case lets the regular expression engine look at the first letter only; ignoring case takes four times as long.
        joined = "|".join(part.replace("'", "['’]?") for part in parts)
        self._pattern = re.compile(rf"(?<![a-zß-ɏ])(?:{joined})(?![a-zß-ɏ])")

    def search(self, sentence: str) -> bool:
        """Whether the cue is there."""
        return self._pattern.search(sentence.lower()) is not None

    def place(self, sentence: str) -> tuple[int, int] | None:
        """Where the cue is first; None if it is not, or lower case has other places."""
        lower = sentence.lower()
        match = self._pattern.search(lower) if len(lower) == len(sentence) else None
        return match.span() if match else None


RULE = Cue(
    r"always|never(?! mind| knew| heard| thought)|must(?: not)?|mustn't|do(?: not|n't) ever|(?:please )?do(?: not"
    r"|n't) (?!(?:know|think|worry|see|remember|believe|understand|mean|care|mind|you|we|they)\b)\w+"
    r"|under no circumstances|no matter what|at all times|no exceptions?|make sure|be sure to|ensure that"
    r"|(?<!not )(?<!if )only|nothing(?! (?:special|much|new|yet|to)\b)|no (?:more|less|fewer|later|earlier) than"
    r"|not (?:more|before|after|over|until|even|to be|be)(?: than)?|at (?:most|least)|at the (?:latest|very least)"
    r"|max(?:imum)?(?: of)?|minimum|strictly|keep (?:it|this|that|them|the \w+) (?:under|below|within|short|private"
    r"|quiet|to|out|off|away|secret|confidential)|stays?|remains?",
    r"can't|cannot|can not|won't|aren't|isn't|doesn't|shouldn't|needn't|allerg\w+|intoleran\w+|vegans?|vegetarians?"
    r"|pescatarian|kosher|halal|c(?:o)?eliac|diabet\w+|pregnant|gluten|lactose|avoid\w*|off[- ]limits|off the table"
    r"|not allowed|forbidden|prohibited|banned|refused?|not permitted|mandatory|non-?negotiable|deal-?breaker|red line"
    r"|hard (?:rule|limit|stop|deadline|no)|rules?|requirements?:|remember(?: that| to|:)|keep in mind|bear in mind"
    r"|from now on|going forward|from here on|in (?:the )?future|by default|as a rule|insist\w*|i'd (?:rather|prefer)"
    r"|i prefer|prefer(?:ably)? not|i hate|i refuse|unless|except|otherwise|instead of|rather than|without|hands off"
    r"|leave .{1,40} alone|stick (?:to|with)|nobody|no one|not a single|exclusively|call me|address me|needs? to (?:be"
    r"|stay|remain|have)|has to|have to (?:be|stay|have)|should (?:never|always|not|only)|required|requires?"
    r"|absolutely|whatever (?:you do|happens)|anything (?:but|except|over|under|with|\w+er than)|(?:under|below"
    r"|less than|over|above|up to|within|by|before|after|until|till) (?:[$€£]\s?)?\d[\w.,]*|budget\w*"
    r"|cap(?:ped)? (?:is|at|it)|limit\w*|deadline|due (?:by|on|date)|no (?!(?:idea|problem|worries|way|need|doubt"
    r"|wonder|big|rush|stress|thanks|clue|reply|answer|longer sure)\b)\w+|zero \w+|sharp|tops|out of the question"
    r"|no-?go",
    r"(?<=, )not(?! (?:sure|really|yet|bad)\b)|ever(?= |,|$)|until (?:after|further|she|he|they|we|i)|till (?:after"
    r"|further|she|he|they|we|i)|swell\w*|react(?:s)? badly|reaction to|can (?:only|never)",
    # German
    r"immer|niemals|nie|muss|müssen|musst|darf (?:nicht|nie|kein\w*|nur)|dürfen (?:nicht|nie|kein\w*|nur)|darfst"
    r"|bitte (?:nur|kein\w*|nicht|immer)|auf keinen fall|keinesfalls|unter keinen umständen|nur (?:noch|mit|nach|vor"
    r"|am|in|über|bis)|höchstens|maximal|mindestens|nicht (?:mehr|vor|nach|ohne|über|unter) (?:als )?|spätestens"
    r"|frühestens|allergi\w+|unverträglich\w*|vegetarisch\w*|denk(?:e|en)? (?:bitte )?(?:daran|dran)|merk(?:e|en)? dir"
    r"|vergiss nicht|ab (?:jetzt|sofort)|in zukunft|künftig|kein(?:e|en|er|em)?|ohne|ich (?:will|möchte|mag) (?:nicht"
    r"|kein\w*)|statt|pflicht|verboten|zwingend|unbedingt|frist|grundsätzlich|ausschließlich",
    # French
    r"toujours|jamais|ne [\wà-ɏ]+ (?:pas|jamais|plus)|n'[\wà-ɏ]+ (?:pas|jamais|plus)|il faut|il ne faut|doi(?:s|t"
    r"|vent)|surtout pas|uniquement|seulement|au (?:maximum|plus|moins|minimum)|pas (?:plus|avant|après|de) "
    r"|plus tard que|allergi\w*|souviens-toi|n'oublie|rappelle-toi|à partir de maintenant|désormais|obligatoire\w*"
    r"|interdit\w*|éviter?z?|sans|sauf|impérativement|sous aucun prétexte",
    # Spanish
    r"siempre|nunca|jamás|debe(?:n|s|mos)?|tiene(?:n|s)? que|hay que|por favor,? (?:no|solo|sólo)|s[oó]lo|únicamente"
    r"|como (?:máximo|mínimo)|máximo|mínimo|no (?:más|menos|antes|después|quiero|puedo|puede|me gusta|uses?|envíes?"
    r"|toques?|pongas?|hagas?|compres?) ?(?:de|que)?|a más tardar|alérgic\w+|alergia|recuerda(?: que)?|no olvides"
    r"|no te olvides|a partir de ahora|de ahora en adelante|prohibid\w+|obligatori\w+|evita\w*|sin|salvo"
    r"|bajo ningún concepto|ni se te ocurra",
    # Portuguese, Italian, Dutch
    r"sempre|não pode|não (?:use|envie|compre)|nunca|mai|non (?:usare|mandare|comprare|posso|voglio|deve)|solo"
    r"|soltanto|massimo|altijd|nooit|moet(?:en)?|alleen",
    # Russian, Chinese, Japanese, Korean
    r"всегда|никогда|нельзя|должн[аоы]?|обязательно|только|не (?:надо|нужно|используй\w*|более|больше|раньше|позже)"
    r"|аллерги\w+|запомни\w*",
    r"总是|一定|必须|务必|千万|绝对|不要|不能|不可以|不得|别|只能|只要|只用|最多|至少|不超过|过敏|记住|以后|禁止|除非|避免|請勿|必須|務必",
    r"必ず|絶対|常に|決して|しないで|ないで(?:ください|下さい)|てはいけ|ダメ|だめ|禁止|以内|以下|以上|までに|アレルギー|覚えて|のみ|だけに|避けて",
    r"항상|절대|반드시|꼭|하지 ?마|말아|안 ?(?:돼|됩니다)|금지|최대|최소|이내|알레르기|기억해|만 사용",
)
"""The speaker lays down what must or must not be."""

WISH = Cue(
    r"please|i (?:need|want|would like|'d like|like|love|wish|expect)|we (?:need|want)|i'm (?:a|an|not|from|based|in"
    r"|on)|i am|i live|i work|i have|my (?:name|budget|address|wife|husband|son|daughter|doctor|boss|preference|goal"
    r"|birthday)|prefer\w*|important|ideally|should|let's",
    r"ich (?:brauche|möchte|bin|habe|will|hätte|wohne|arbeite)|bitte|wichtig|am liebsten|je (?:veux|voudrais|suis"
    r"|préfère|dois)|j'ai(?:merais)?|s'il (?:te|vous) pla[iî]t|quiero|necesito|prefiero|soy|tengo|por favor|importante"
    r"|vivo",
    r"мне нужно|пожалуйста|я хочу|我要|我想|请|希望|需要|ください|お願い|たい|해 ?주세요|필요",
)
"""A softer form: what the speaker is, has or wants."""

DECISION = Cue(
    r"(?:we|i)(?:'ve| have)? (?:decided|agreed|chosen|settled|picked|concluded|approved)|decided (?:on|to|against"
    r"|that)|decision(?: is|:)|agreed|let's (?:go|do|use|take|keep|stick|settle|book|make|say|move|drop|skip|postpone"
    r"|call it)|(?:we|i)(?:'ll| will| are| am|'re|'m) (?:go(?:ing)? with|tak(?:e|ing)|us(?:e|ing)|keep(?:ing)?"
    r"|stick(?:ing)?|switch(?:ing)?|drop(?:ping)?|skip(?:ping)?|book(?:ing)?)|go(?:ing)? with|settled on"
    r"|final (?:answer|decision|choice|call)|it's settled|that's settled|signed off|sign-?off|approved|confirmed"
    r"|booked|the plan is|conclusion|verdict|ruled out|rejected|we chose|make it|go ahead with|went with|opted for"
    r"|locked in|done deal",
    r"entschieden|beschlossen|einigen wir uns|wir nehmen|wir machen|nehmen wir|machen wir|abgemacht|festgelegt"
    r"|vereinbart|entscheidung|genehmigt",
    r"décidé|on part sur|on prend|on garde|c'est validé|validé|convenu|on choisit|décision|d'accord pour",
    r"decidi(?:do|mos)|decisión|vamos con|quedamos en|nos quedamos con|acordado|acordamos|elegimos|confirmado|aprobado",
    r"решили|договорились|выбрали|决定|定了|确定|就选|就用|決め|決定|にします|결정|하기로",
)

OPEN = Cue(
    r"still (?:open|undecided|unclear|unresolved|pending|to be decided|don't know|not sure|need to (?:decide|figure"
    r"|find|check|sort)|waiting)|tbd|tbc|to be (?:decided|determined|confirmed)|undecided|unresolved|open (?:question"
    r"|point|issue|item)s?|(?:we|i) (?:still )?(?:need|have) to (?:decide|figure out|find out|clarify|settle|work out"
    r"|sort out)|haven't (?:decided|figured|settled|heard|found|worked)|not (?:yet )?(?:decided|settled"
    r"|clear)(?: yet)?|remains to be|up in the air|no idea (?:yet|whether|if|who|when|how|what|which)|(?:don't"
    r"|do not) know (?:yet|whether|if)|question (?:is|remains)|unclear (?:whether|if|who|what|how)|pending"
    r"|parking that|park (?:that|this)|undetermined|someone (?:needs|has) to",
    r"noch (?:offen|unklar|nicht (?:entschieden|geklärt|klar|sicher))|ungeklärt|offene frage|müssen wir noch"
    r"|muss noch (?:geklärt|entschieden)|steht noch (?:nicht fest|aus)|à (?:décider|confirmer|définir|voir)|reste à"
    r"|pas encore (?:décidé|sûr|tranché)|en suspens|on ne sait pas encore|à trancher|pendiente|por (?:decidir"
    r"|confirmar|definir)|falta (?:decidir|confirmar|saber)|todavía no (?:sé|sabemos|hemos)|aún no (?:sé|sabemos"
    r"|hemos)|sin decidir",
    r"пока не (?:решили|ясно|знаем)|открыт(?:ый|ым) вопрос|待定|还没(?:有)?(?:决定|定|确定)|未定|未決|まだ決ま|検討中"
    r"|아직 (?:미정|결정|못)",
)
"""Marked as not settled."""

DEFERRAL = Cue(
    r"not able to (?:say|tell|answer)|(?:ask|check with) your|(?:you'd|you would|you'll|you) (?:need|have) to ask"
    r"|best to ask|that needs (?:your|a|an|local)",
    r"i'(?:ll|m going to) (?:check|look|find out|ask|get back|confirm|verify|investigate|see|dig|come back|follow up"
    r"|report back)|i will (?:check|look|find out|ask|get back|confirm|verify|investigate|follow up)|let me (?:check"
    r"|look|find|see|get back|confirm|ask|think|verify|dig)|not sure|(?:i )?(?:don't|do not|can't|cannot) (?:know|tell"
    r"|say|confirm|access|see|find|determine)|no idea|get back to you|need to (?:check|ask|look|confirm|verify"
    r"|look into)|have to (?:check|ask|confirm)|would have to (?:check|ask)|can't say (?:yet|for sure)|unclear|unknown"
    r"|couldn't (?:find|determine|tell)|waiting (?:for|on|to hear)|once i (?:know|hear)|will let you know"
    r"|keep you posted|pending|no (?:answer|reply) yet",
    r"ich (?:schaue|prüfe|kläre|frage|melde mich|weiß (?:es )?nicht|kann (?:es )?nicht sagen|muss (?:das )?(?:prüfen"
    r"|klären|nachsehen|nachfragen))|bin (?:mir )?nicht sicher|melde mich|noch unklar|keine ahnung"
    r"|je (?:vais (?:vérifier|regarder|demander|voir)|vérifie|ne sais pas|reviens vers)|pas sûre?|aucune idée"
    r"|je te (?:dis|tiens)|lo (?:reviso|miro|consulto|averiguo|confirmo)|voy a (?:revisar|mirar|consultar|preguntar"
    r"|comprobar)|no (?:lo )?sé|no estoy segur\w|te (?:aviso|digo|confirmo) (?:luego|después|cuando|en cuanto)|ni idea",
    r"не (?:знаю|уверен\w*)|уточню|проверю|узнаю|我(?:去)?(?:查|问|看)一?下|不(?:太)?(?:确定|清楚|知道)|稍后"
    r"|確認し(?:ます|て)|調べ|分かりません|わかりません|확인해 ?보|모르겠",
)
"""An answer that puts the answer off."""

PROMISE = Cue(
    r"i(?:'ll| will| promise| am going to|'m going to| shall| can have)|we(?:'ll| will| are going to)"
    r"|you can count on me|i commit|consider it done|ich (?:werde|verspreche|kümmere|schicke|mache|erledige|rufe"
    r"|melde)|wir werden|je (?:vais|te promets|vous promets|m'occupe|m'engage)|on va|nous allons|voy a|vamos a"
    r"|te prometo|me comprometo|me encargo|обещаю|я (?:сделаю|отправлю)|我会|我来|我保证|します|しておきます|할게요"
    r"|하겠습니다",
)

CORRECTION = Cue(
    r"next time|from now on|going forward|in future|that(?:'s| was| is) (?:wrong|not right|incorrect|not what"
    r"|a mistake)|you (?:should|could) have|you were (?:wrong|supposed)|(?:please )?(?:don't|do not|stop"
    r"|never) .{2,60} again|stop \w+ing|instead of .{1,60}(?:use|do|try|write|call|send)|use .{1,60} (?:instead|not) "
    r"|(?:do|try|use|run|call|write|send) .{1,60} instead|lesson learned|the (?:right|correct) (?:way|one|command"
    r"|approach) (?:is|was)",
    r"nächstes mal|beim nächsten mal|ab jetzt|ab sofort|das war falsch|das ist falsch|hättest|stattdessen"
    r"|la prochaine fois|c'était faux|c'est faux|tu aurais dû|vous auriez dû|à partir de maintenant|plutôt que"
    r"|la próxima vez|eso (?:está|estaba) mal|deberías haber|a partir de ahora|en lugar de|в следующий раз"
    r"|это неправильно|下次|以后|不对|次回|次から|다음(?:부터|에는)",
)
"""The user corrects the agent, or says how to do it another time."""

PROJECT = Cue(
    r"projects?|build(?:ing)?|launch(?:ing)?|releas(?:e|ing)|plann?(?:ing|ed)?|trip|mov(?:e|ing) to|thesis|app|website"
    r"|migrat\w+|renovat\w+|working on|startup|course|book|paper|campaign|wedding|event|deadline|milestone|sprint"
    r"|rollout|deploy\w*|refactor\w*|projekt\w*|umzug|reise|hochzeit|projet|voyage|déménag\w+|mariage|proyecto|viaje"
    r"|mudanza|boda|проект|项目|计划|プロジェクト|計画|프로젝트|계획",
)

SELF = Cue(
    r"i(?:'m| am)(?! (?:going|trying|thinking|looking|sure|not sure|sorry|afraid|here|back|done|ready|just|still|also"
    r"|so))|i (?:live|work|have|prefer|like|love|hate|study|teach|own|speak|play|run|always|never|usually|can't|cannot"
    r"|don't (?:eat|drink|like|want|use))|i'm|my (?:name|wife|husband|partner|son|daughter|kids|job|birthday|address"
    r"|home|favou?rite|doctor|team|company|diet)|i was (?:born|diagnosed)|call me",
    r"ich (?:bin|heiße|wohne|arbeite|habe|mag|esse|trinke)|mein(?:e)? (?:name|frau|mann|sohn|tochter|team|firma)"
    r"|je (?:suis|m'appelle|habite|travaille)|j'(?:ai|habite|aime)|soy|me llamo|vivo|trabajo|tengo|mi (?:nombre|mujer"
    r"|marido|hij[oa]|trabajo)|меня зовут|я (?:живу|работаю)|我(?:是|叫|住|在)|私は|저는",
)
"""The user speaks of themselves."""

SMALL_TALK = re.compile(
    r"(?:(?:hi|hey|hello|hiya|yo|good (?:morning|afternoon|evening|night)|morning|thanks?(?: you)?(?: so much| a lot"
    r"| again| very much)?|thx|ty|cheers|ok(?:ay)?|k|kk|sure|great|cool|nice|perfect|awesome|amazing|lovely|wow|yes"
    r"|yeah|yep|yup|no|nope|nah|right|got it|sounds good|lol|lmao|haha\w*|hehe\w*|hmm+|uh+|ah+|oh+|please|bye|goodbye"
    r"|see you(?: later| soon| tomorrow)?|good ?night|you(?:'re| are) welcome|no (?:problem|worries)|my pleasure"
    r"|happy to help|anytime|of course|absolutely|certainly|exactly|indeed|done|noted|understood"
    r"|how are you(?: doing)?(?: today)?|how's it going|what's up|i'm (?:fine|good|well)|that(?:'s| is) (?:great|good"
    r"|fine|nice|awesome|perfect|helpful)|is there anything else(?: i can (?:help"
    r"|do)(?: you)?(?: with)?(?: for you)?)?(?: today)?|(?:how|what) can i (?:help|do)(?: you"
    r"| for you)?(?: with)?(?: today)?|let me know if you need anything(?: else)?|have a (?:great|good|nice"
    r"|lovely) \w+|hallo|moin|servus|guten (?:morgen|tag|abend)|danke(?: schön| dir| sehr| vielmals)?|bitte(?: schön"
    r"| sehr)?|gern(?:e)?|super|klar|alles klar|genau|ja|nein|tschüss|bis (?:bald|dann|morgen)|wie geht(?:'s| es dir"
    r"| es ihnen)|gut|prima|passt|salut|bonjour|bonsoir|merci(?: beaucoup| bien)?|de rien|d'accord|oui|non|parfait"
    r"|génial|ça va|au revoir|à bientôt|bonne (?:journée|soirée|nuit)|hola|buen(?:os|as) (?:días|tardes|noches)"
    r"|(?:muchas )?gracias|de nada|vale|sí|claro|perfecto|genial|adiós|hasta (?:luego|pronto|mañana)|qué tal|привет"
    r"|здравствуйте|спасибо(?: большое)?|пожалуйста|да|нет|ок|хорошо|пока|你好|您好|谢谢(?:你|您)?|好的?|嗯+|不客气"
    r"|再见|哈哈+|早上好|晚安|行|对|こんにちは|こんばんは|おはよう(?:ございます)?|ありがとう(?:ございます"
    r"|ございました)?|はい|いいえ|了解(?:です)?|お疲れ様(?:です)?|안녕하세요|안녕|감사합니다|고마워요?|네|아니요"
    r"|좋아요|ㅋㅋ+|مرحبا|شكرا|السلام عليكم|نعم|لا|नमस्ते|धन्यवाद|हाँ|नहीं|ठीक है|there|all|everyone|team|man|mate"
    r"|buddy|so|well|then|again|and|too|very|much|just|it|you|to|meet|today|everybody|und|auch|et|y|guys|folks"
    r"|dear)(?:[\W_]+|$))+",
    re.IGNORECASE,
)

QUESTION = re.compile(r"[?？؟\u037e⁇⁈]['\"”’»)\]}」』*_]*$")
_ASKS = re.compile(
    r"(?:who|what|when|where|which|why|how|is|are|do|does|did|can|could|would|should|will|any idea|wer|was|wann|wo"
    r"|welche\w*|warum|wie|kann|können|qui|que|quand|où|quel\w*|pourquoi|comment|est-ce|quién|qué|cuándo|dónde|cuál\w*"
    r"|por qué|cómo)\b",
    re.IGNORECASE,
)
_DENSE = re.compile(r"[\u3040-\u9fff\uac00-\ud7a3]")
_LETTERS = re.compile(r"[^\W\d_]")


def is_question(sentence: str) -> bool:
    """Whether the sentence asks, by its mark. Without a mark nothing is a question."""
    return bool(QUESTION.search(sentence)) and bool(_LETTERS.search(sentence))


def asks_openly(sentence: str) -> bool:
    """Whether a question expects more than assent: it starts like one, or is long enough to be one."""
    return len(sentence) >= (5 if _DENSE.search(sentence) else 12) or _ASKS.match(sentence) is not None


def is_small_talk(sentence: str) -> bool:
    """Greetings, thanks, assent, laughter, and what has no letters or digits at all."""
    if len(sentence) > 120:
        return False
    if not any(char.isalnum() for char in sentence):
        return True
    return SMALL_TALK.fullmatch(sentence.strip(" \t*_~\"'“”’.,!?…-")) is not None
