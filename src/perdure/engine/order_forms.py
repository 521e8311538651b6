"""The forms in which people give standing orders and take them back: English, and simple German, French and Spanish.

A form is looked for where a clause starts, so that what others say, and what is told of others, is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from perdure.domain.instructions import OrderKind
from perdure.engine.ownwords import OWN_CHARS_MAX, opens_fiction, own_words
from perdure.engine.sentences import sentence_spans


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VERBS = """
    answer reply respond write use format give include show tell speak talk keep explain provide cite add list summarise
    summarize ask remind check double-check doublecheck suggest recommend mention avoid end start begin open close put
    convert translate be assume treat consider confirm round default schedule book send order spell refer address call
    sign highlight attach limit stick skip leave verify warn notify alert let quote number sort present display return
    output generate create produce draft propose offer refrain mark tag label log save store remember note track count
    calculate state say specify describe break structure organise organize split wrap comment document point make do
    plan set share reveal apologise apologize compare rank rate rewrite proofread correct review define interrupt wait
    stay act pretend greet thank joke emphasise emphasize prefer prioritise prioritize pick choose read search look
    replace capitalise capitalize abbreviate shorten simplify apply follow repeat ping text email message cc bcc copy
    forward delete remove change edit charge buy post publish commit push merge deploy test phrase word hide omit drop
    ignore focus justify back link reference annotate estimate express report record bring help try stop find fill name
    indent sound turn switch print validate handle quiz challenge move reschedule decline accept block fix double
"""
_NOT_PLAIN = """
    be leave let order refrain remember note track count calculate break point do rate proofread review wait stay act
    pretend joke prefer pick choose read search look shorten apply follow ping text email message copy forward change
    edit charge buy post publish push merge deploy test word drop ignore focus justify back express report record bring
    help try stop find fill sound turn switch print quiz challenge move reschedule decline accept block
"""
_WORDS = {
    # What an agent is asked to do.
    "VERB": _words(_VERBS),
    # Of these, what is hardly ever said of oneself with the `I` left out, nor as advice to everybody.
    "PLAIN": _words(_VERBS) - _words(_NOT_PLAIN),
    # How an agent speaks and works: said of `you`, these are no advice to everybody.
    "MANNER": _words(
        """answer reply respond include cite format mention explain translate summarise summarize remind warn address write
        use end start quote double double-check confirm suggest recommend describe"""
    ),
    "DOING": _words(
        """answering replying responding using calling adding ending starting beginning writing asking apologising
        apologizing suggesting recommending repeating sending reminding giving telling including saying putting listing
        showing quoting citing speaking talking greeting signing opening closing converting translating explaining
        formatting making mentioning bringing booking scheduling tracking logging praising flattering thanking
        correcting interrupting rounding counting warning checking shortening numbering turning treating addressing
        referring lecturing nagging reciting rhyming summarising summarizing capitalising capitalizing abbreviating"""
    ),
    "DE": _words(
        """antworte schreib schreibe benutz benutze verwende nutz nutze nenn nenne sag sage sprich rede gib zeig zeige füg
        füge nimm plan plane buch buche erklär erkläre fass fasse halt halte mach mache duz duze siez sieze erwähn
        erwähne frag frage erinner erinnere prüf prüfe setz setze stell stelle beginn beginne beende lass sei schick
        schicke empfiehl schlag schlage übersetz übersetze rechne formulier formuliere zitier zitiere kürz kürze
        verzichte vermeide behandle runde warn warne"""
    ),
    "FR": _words(
        """réponds répondez écris écrivez utilise utilisez emploie employez parle parlez donne donnez appelle appelez dis
        dites mets mettez propose proposez cite citez indique indiquez montre montrez ajoute ajoutez explique expliquez
        commence commencez termine terminez sois soyez fais faites garde gardez évite évitez tutoie tutoyez vouvoie
        vouvoyez rappelle demande demandez vérifie vérifiez traduis résume résumez recommande recommandez précise
        précisez reste restez adresse suppose supposez préviens planifie planifiez réserve réservez envoie envoyez"""
    ),
    "ES": _words(
        """responde contesta usa utiliza escribe habla dame dime da di pon llámame tutéame trátame incluye cita muestra
        muéstrame añade agrega explica explícame sé haz evita recuérdame avísame propón recomienda revisa traduce resume
        empieza termina pregúntame indica mantén programa reserva háblame respóndeme escríbeme"""
    ),
    "ES_NO": _words(
        """uses utilices respondas contestes escribas programes propongas recomiendes reserves pongas digas hables des
        envíes llames menciones incluyas hagas sugieras supongas asumas redondees mandes termines empieces"""
    ),
}
_PIECES = {
    "THING": r"(?:emojis?|emoticons?|smileys?|exclamation (?:mark|point)s?|bullet(?:[- ]points?|s)|markdown|tables?"
    r"|headings?|disclaimers?|apolog(?:y|ies)|jargon|slang|abbreviations?|acronyms?|contractions|small talk|pleasantries"
    r"|compliments|jokes|puns|metaphors|links|sources|citations|footnotes|follow-?up questions|questions|reminders"
    r"|suggestions|recommendations|spoilers|summaries|introductions?|intros?|greetings|nicknames|rhymes?|haikus?"
    r"|all[- ]caps|italics|bold|em[- ]dashes|metric|imperial|celsius|fahrenheit|kilomet(?:er|re)s|miles|(?:the )?(?:12|24"
    r"|twelve|twenty-four)[- ]hour|(?:british|american) (?:english|spelling)|{LANG}|(?:short|long|brief|detailed|concise"
    r"|full)(?:er)? (?:answers|replies|responses|ones|explanations)|first names?)",
    "LANG": r"(?:english|french|german|spanish|italian|portuguese|dutch|polish|russian|turkish|greek|swedish|norwegian|danish"
    r"|finnish|czech|hungarian|romanian|ukrainian|arabic|hebrew|hindi|bengali|urdu|persian|chinese|mandarin|cantonese|japanese"
    r"|korean|vietnamese|thai|indonesian|latin|catalan|welsh|irish)\b",
    "MARK": r"(?:from now on|from here on(?: out| in)?|from this (?:point|moment|day)(?: on| onwards?| forward)?"
    r"|from (?:today|tonight|tomorrow) (?:on|onwards?)|starting (?:now|today|tonight|tomorrow|right now|immediately)"
    r"|as of (?:now|today)|effective immediately|going forwards?|moving forwards?|henceforth|until further notice"
    r"|until i (?:say|tell you) otherwise)",
    "FUTURE": r"in (?:the )?future",
    "SCOPE": r"(?:(?:in|for) (?:(?:all|any|every|each)(?: of)?(?: your| our| future){1,2}|future) \w+"
    r"|no matter what(?: i (?:ask|say))?(?: you)?|whatever i (?:ask|say)(?: you)?|as a (?:general )?rule|by default"
    r"|for (?:future )?reference)",
    "ASK": r"(?:i|we)(?:'d| would)? (?:want|need|expect|like|prefer|love|rather|appreciate)(?: it)?(?: that| if)?",
    # Bounded, like all that repeats: what repeats without end can be read in very many ways.
    "PLEASE": r"(?:(?:please|pls|plz|kindly|also|just|then|simply|instead|always|only|and|but|so),? ){0,4}",
    "NOT": r"(?:do(?: not|n't)(?: ever)?,?|never(?: ever)?|always|only)",
    "YOURS": r"(?:(?:all(?: of)?|every|each(?: of)?) )?(?:your |my )?(?:future )?(?:answers?|repl(?:y|ies)|responses?"
    r"|messages?|code|explanations?|summar(?:y|ies)|e-?mails?|suggestions?|recommendations?)(?: you (?:write|give|send"
    r"|draft)(?: for| to)? me)?",
    "DE_MARK": r"(?:ab (?:jetzt|sofort|heute)|von (?:nun|jetzt) an|(?:zu)?künftig|in zukunft|fortan|bis auf weiteres)",
    "FR_MARK": r"(?:à partir de maintenant|à partir d'aujourd'hui|désormais|dorénavant|à l'avenir|dès maintenant"
    r"|jusqu'à nouvel ordre)",
    "ES_MARK": r"(?:a partir de (?:ahora|hoy)|de ahora en adelante|en adelante|desde ahora|de aquí en adelante|en el futuro"
    r"|hasta nuevo aviso)",
}
_PIECES["THING"] = _PIECES["THING"].replace("{LANG}", _PIECES["LANG"])


def _spelled(form: str) -> str:
    """A form with its pieces put in; `'` stands for every apostrophe."""
    for name, piece in _PIECES.items():
        form = form.replace(f"{{{name}}}", f"(?:{piece})")
    return form.replace("'", "['’]")


def _form(*parts: str) -> re.Pattern[str]:
    """Any of some forms, in any case."""
    return re.compile(_spelled("|".join(parts)), re.IGNORECASE)


class _Forms:
    """Any of some forms, in which `{VERB}` and the like stand for a word of a list, always as the last choice at its place.

    The words are looked up, not spelled out: with every list in every form, compiling takes three times as long.
    """

    def __init__(self, *parts: str) -> None:
        self._forms = [re.compile(self._numbered(_spelled(part)), re.IGNORECASE) for part in parts]

    @staticmethod
    def _numbered(form: str) -> str:
        count = iter(range(9))
        return re.sub(r"\{([A-Z_]+)\}", lambda match: rf"(?P<{match[1]}{next(count)}>[^\W\d_]+(?:-[^\W\d_]+)?)\b", form)

    def match(self, clause: str) -> bool:
        return any(self._fits(form.match(clause)) for form in self._forms)

    @staticmethod
    def _fits(match: re.Match[str] | None) -> bool:
        if match is None:
            return False
        return all(word is None or _is_one(word.lower(), _WORDS[name[:-1]]) for name, word in match.groupdict().items())


def _is_one(word: str, words: frozenset[str]) -> bool:
    """Whether it is one of the words, or one with something hung on: `appelle-moi`."""
    return word in words or word.partition("-")[0] in words


# What may stand before an order in its sentence without being part of it.
_LEAD = _form(
    r"(?:(?:ok(?:ay)?|alright|all right|right|great|perfect|cool|nice|good|fine|thanks?(?: you)?(?: so much| a lot"
    r"| again)?|thx|hey|hi|hello|so|and|but|also|oh|well|now|then|yes|yeah|yep|no(?=[,.!])|btw|by the way|anyways?|again"
    r"|actually|please|pls|just|(?:but )?first(?:ly)?|finally|lastly|one (?:more|last|other|small|quick) thing|one thing"
    r"|(?:a )?quick (?:note|thing|request|reminder|one)|(?:just )?a (?:note|reminder|request)|note(?: to you)?|reminder"
    r"|important|remember(?=[:,])|another thing|in general|generally|for (?:future )?reference|look|listen|seriously"
    r"|@\w{2,20})\b[,.:;!–—-]{0,3}\s{1,3}){0,6}"
)
_SEPARATOR = _form(
    r"(?P<firm>,\s+but\s+first:\s+|,\s+(?:so|therefore|thus)\s+(?:please\s+)?|,\s+(?=please\b)|,\s+(?:and|but)\s+(?=please\b))",
    r"[;–—]\s*|\s-\s|,\s+(?:but|and|then)\s+|,\s+(?={MARK}|{FUTURE})|\band\s+(?={MARK})",
)
_VOCATIVE = re.compile(r"(?i:hey |hi |ok |okay )?[A-Z]\w{1,20},\s+")
CLAUSES_MAX = 8
# A clause that comes after words like these is somebody else's, or is told rather than said.
_TOLD = _form(
    r"\b(?:sa(?:id|ys?|ying)|t(?:old|ells?)|wr(?:ote|ites?)|asks?|asked|claims?|according|rules?|mottos?|tips?|advice"
    r"|polic(?:y|ies)|manual|recipe|sign|guide|instructions?|announce\w*|reads?|warning|lesson|secret|orders|ordered|told"
    r"|heard|motto|sagte?|schrieb|dit|dice)\b",
    r"^\W*(?:dear|hi|hello) (?:all|team|everyone|everybody|colleagues|customers?|guests?|students|neighbou?rs)\b",
)
_ATTRIBUTED = _form(
    r",\s*(?:\w+ ){1,4}(?:sa(?:id|ys?)|told|tells|keeps?|used to|repeats?|repeated|wrote|insists?|warned|thinks?)\b[^,]{0,40}$",
    r",\s*(?:right|isn't it|no|correct)\?$",
)
_ONCE = _form(
    r"\b(?:this time|just (?:this )?once|for now\b|for (?:this|that) (?!chat|conversation)\w+|in this (?!chat|conversation)\w+"
    r"|next time|tomorrow|tonight|when i get (?:home|back|there)|dieses mal|diesmal|cette fois|esta vez)\b"
)
_SOFTWARE = _form(
    r"\b(?:the|a|an|each|every) (?:user|button|page|app|server|client|function|request|form|visitor|script|sidebar|header"
    r"|footer|field|column|row|component|method|api|endpoint|class|variable|widget|modal|menu|dropdown|cursor|screen|query"
    r"|tests?)\b"
)
_TO_OTHERS = _form(
    r"(?:(?:please|can you|could you|would you|will you|i want you to|i need you to|you should|always|never) ){0,2}"
    r"(?:tell|ask|remind|inform|warn|let|teach|text|e-?mail|message) (?!me\b|us\b|how\b|whether\b|for\b|if\b|before\b|first\b)",
    r".{0,200}\b(?:that|saying|says?|stating|where|because) (?:{MARK}|whenever|every ?time)\b",
)
# Times that are asked for: `list every time I was late`.
_TIMES = _form(
    r"(?:(?:please|can you|could you|would you|will you) ){0,2}(?:list|show|tell|give|count|find|name|summari[sz]e|recall"
    r"|mention|describe|check)(?: me| us)?(?: of| about| up| down| the)? (?:every|each|any) ?time\b"
)
_ME = _form(
    r"\b(?:me|my|mine|your|us|our|from you|i (?:ask|say|mention|paste|share|send|write)|{LANG}|metric|imperial|celsius"
    r"|fahrenheit)\b"
)
_POINTLESS = _form(
    r"(?:{PLEASE})?(?:{NOT} )?(?:do|say|try|use|send|mention|repeat) (?:that|this|it|so)(?: to me)?(?: ever)?(?: again)?\W*$"
)

# Orders that speak to the agent outright.
_OUTRIGHT = _Forms(
    r"(?:{MARK}|{FUTURE}|{SCOPE})[,:]?\s+{PLEASE}(?:{NOT} {PLEASE})?{VERB}",
    r"(?:{MARK}|{FUTURE})[,:]?\s+{PLEASE}(?:no(?: more)? (?!one\b|longer\b|matter\b)\w+|{ASK} (?:you\b|your\b|all\b"
    r"|every\b|to be (?:called|addressed|referred)|(?:short|long|brief|detail|concise|simple)\w* )|you (?:should|must"
    r"|have to|need to|are to|shall|may not|can't|cannot|shouldn't|mustn't|will)\b|let's {PLEASE}{VERB}|(?:can|could|would"
    r"|will) you\b|{YOURS} (?:should|must|need|have to|has to)\b|it's [A-Z]\w+, not\b)",
    r"{ASK} you (?:to )?(?:please )?(?:always|never)\b",
    r"{PLEASE}(?:make|be) sure (?:that |to |you ){0,3}(?:always|never)\b",
    r"(?:{PLEASE}remember|try|keep in mind|don't forget) to (?:always|never) {VERB}",
    r"it (?:would|'d) be (?:great|nice|good|helpful|better|lovely|best) if you (?:always|never)\b",
    r"{PLEASE}(?:whenever|every ?time|each time|any ?time)(?! you(?:'re| are| have| can| want| like| feel| get| need))"
    r"(?: [^,;]{2,160}),\s+(?:then )?{PLEASE}(?:{NOT} {PLEASE})?(?:you (?:should|must|have to|need to|can|will)\b"
    r"|{ASK} you\b|{VERB})",
    r"{PLEASE}(?:whenever|every ?time|each time|any ?time) i [^,;]{2,120}? (?:please |always |never "
    r"|don't ){0,3}(?:remind me|tell me|give me|show me|warn me|ask me|answer in|reply in|respond in|always {VERB}"
    r"|never {VERB})",
    r"{PLEASE}(?:(?:each|every) (?:morning|evening|night|day|week|time) )?(?:when|if) i (?:ask(?! (?:my|him|her|them|the"
    r"|someone|people)\b)|mention|request|say)\b(?: [^,;]{2,160}),\s+(?:then )?{PLEASE}(?:{NOT} {PLEASE})?{VERB}",
    r"(?:when|if|for|in|with|on|before|after|while|during|as|since|because) [^,;:]{2,120},\s+{PLEASE}(?:always|never)"
    r"(?: ever)? (?:please )?{VERB}",
    r"(?:can|could|would|will) you {PLEASE}(?:please )?(?:always|never)(?: ever| again)?(?: please)? (?:(?:give|tell|ask"
    r"|show|call) me\b|refer to|{MANNER})",
    r"(?:could|would|will) you {PLEASE}(?:please )?(?:always|never)(?: please)? (?!return){PLAIN}",
    r"(?:you (?:should|must|have to|need to|are to|shall|may|can't)|under no circumstances (?:should|may|must) you)(?: please)?"
    r" (?:always|never(?: ever)?) {VERB}.{0,200}\b(?:me|my|mine)\b",
    r"(?:you (?:should|must|have to|need to|are to|shall))(?: please)? (?:always|never(?: ever)?) (?:(?:give|tell|ask|show"
    r"|call) me\b|refer to|{MANNER})",
    r"under no circumstances,? (?:should you|are you to|do|may you|{VERB})",
    r"i (?:always|never|only ever|only) want .{0,160}\b(?:from you|your (?:answers|replies|responses))\b",
    r"(?:all(?: of)? |each of )?your (?:answers|replies|responses|messages|summaries|explanations) (?:should|must|need to"
    r"|have to)\b",
    r"{YOURS} (?:should|must|needs? to|ha(?:s|ve) to) (?:always|never)\b",
    r"{PLEASE}(?:answer|reply|respond|speak|talk|write|use|stick)\b.{0,120}\bat all times",
    r"{THING} (?:are|is) (?:off[- ]limits|forbidden|banned|off the table|not allowed) {MARK}",
    r"default to {THING}",
)
# An order of any kind, if the sentence says later on that it is to last.
_ASKED = _Forms(
    r"{PLEASE}(?:{NOT},? {PLEASE})?(?:under any circumstances,? )?{VERB}",
    r"{PLEASE}no (?:more )?{THING}",
    r"let's {PLEASE}{VERB}",
    r"{ASK} (?:you|your|all your|every)\b",
    r"(?:can|could|would|will) you\b",
    r"you (?:should|must|have to|need to|are to|shall|can't|shouldn't|mustn't)\b",
    r"{YOURS} (?:should|must|needs? to|ha(?:s|ve) to|were|are)\b",
)
_LASTING = _form(
    r"\b{MARK}",
    r"\b(?:whenever|every ?time|each time|any ?time) (?!you(?:'re| are| have| can| want| like| feel| get| need)\b)(?:(?:i"
    r"|you|we|a|an|my|someone|somebody|there|it|he|she|they|before|after|when|the) |\w+ing )",
    r"\b(?:ever(?: again)?|{FUTURE})[.! ]*$",
    r",\s*always\W*$",
    r"\bunder any circumstances\b",
)
_NO_LONGER = _Forms(
    r"{PLEASE}do(?: not|n't) {PLEASE}(?!be )(?:{VERB}).{1,200}\b(?:any ?more|any longer|ever again)\b",
    r"{PLEASE}never again {VERB}",
)
_BY_DEFAULT = _Forms(r"{PLEASE}(?:{NOT} )?{VERB}.{1,200}\b(?:by default|as a rule)\b")
_BARE = _Forms(
    r"{PLEASE}(?:always|never(?: ever)?|do(?: not|n't) ever)(?: {PLEASE})? ?(?!(?:end|keep|give) (?:up|in|on|going)\b"
    r"|say never)(?:be (?:honest|brief|concise|polite|direct|blunt|specific|formal|informal|positive|critical|careful"
    r"|clear|precise|explicit|friendly|kind|nice|truthful|short|detailed|patient|strict|gentle|respectful|neutral"
    r"|objective)\b|point out|bring up|leave (?:an?|the|out)\b|{PLAIN})",
    r"{PLEASE}(?:answer|reply|respond|speak|write|talk)(?: to me)? always\b",
    r"{PLEASE}(?:no more {THING}\W*(?:(?:please|{MARK})\W*){0,2}$)",
)
_NAMED = re.compile(
    r"(?i:(?:please |just |simply |you (?:can|may) (?:just )?|from now on,? |do(?:n['’]t| not) ){0,4}(?:call me"
    r"|address me as|refer to me as)) (?i:just )?(?:(?i:dr|mr|mrs|ms|prof|sir|the)\.? )?(?!(?i:(?:mon|tues|wednes|thurs"
    r"|fri|satur|sun)day|tomorrow|tonight|later|asap|back|when|if|a|an"
    r"|crazy)\b)(?-i:[A-Z][\w'’-]*)(?: (?-i:[A-Z][\w'’-]*)){0,2}(?:\s*[.!,;(]|\s*$|\s+(?i:please|from now|instead|and"
    r"|any ?more|for short|because|since|,)\b)"
)
_STOP = _Forms(
    r"{PLEASE}(?:stop|quit|cease) {DOING}(?! yourself\b)",
    r"(?:bitte )?hör(?:en sie)?(?: bitte)? auf,? .{3,80}\bzu \w+",
    r"(?:s'il (?:te|vous) pla[iî]t,? )?arrêtez? (?:de |d')\w+",
    r"(?:por favor,? )?(?:deja|para) de \w+r\b",
)
_WITHDRAWAL = _Forms(
    r"(?:now )?you (?:can|may|could|are (?:free|allowed|welcome) to|'re (?:free|allowed|welcome) to)(?: now"
    r"| start)? (?:use|using|write|writing|add|adding|include|including)(?: the| some| your"
    r"| in){0,2} {THING}(?: [^,;.]{1,40})? again",
    r"(?:now )?you (?:can|may|could)(?: now)? (?!use\b)(?:schedule|book|send|remind|mention|bring up|talk|speak|(?:give"
    r"|tell|ask|show|call) me|refer to|{MANNER}) .{1,120}\bagain\b",
    r"(?:feel free|it's (?:ok|okay|fine|all ?right|good|cool)(?: for you)?) to {VERB} .{1,120}\bagain\b",
    r"{THING} (?:are|is) (?:ok|okay|fine|allowed|welcome|good|all ?right) again\b",
    r"(?:now )?(?:you (?:can|may) |please |let's |lets |just ){0,3}(?:go|switch|change|revert|get) back to (?:{THING}"
    r"|normal\b|your (?:normal|usual|old)|plain|{DOING})",
    r"you (?:don't|do not) (?:have|need) to {VERB}.{0,160}\b(?:any ?more|any longer|now)\b",
    r"(?:you needn't|no need to|there's no need to) {VERB}.{0,160}\b(?:any ?more|any longer|now)\b",
    r"you no longer (?:have|need) to {VERB}",
    r"you can (?:now )?stop {DOING}",
    r"{PLEASE}(?:forget|ignore|disregard|scrap|drop|never ?mind|cancel|scratch|undo)(?: about)? what i (?:said|told you"
    r"|asked(?: you)?|wanted)(?: earlier| before| yesterday)? (?:about|on|regarding|concerning|to do with)\b",
    r"{PLEASE}(?:forget|ignore|disregard|scrap|drop|cancel|lift|undo)(?: about)? (?:my|the|that|this|our) (?:earlier "
    r"|previous |last |old |own ){0,2}(?:[\w-]+ )?(?:rule|instruction|order|request|limit|restriction|ban|voice|persona"
    r"|accent|style)s?(?: (?:about|on|regarding|to|that|for) .{2,}|\W*$)",
    r"i (?:take|'ll take) back what i (?:said|told you|asked) about\b",
    r"i(?:'ve| have)? changed my mind about .{2,100}\byou (?:can|may)\b",
    r"(?:that|the|my) (?:rule|instruction|order|request) (?:about|on|to|that) .{2,100}\b(?:no longer (?:applies|counts"
    r"|holds)|is (?:off|over|gone|void|cancelled))\b",
)
_OTHER_WITHDRAWAL = _Forms(
    r"du (?:kannst|darfst)(?: jetzt| gerne?){0,2} wieder\b",
    r"du (?:musst|brauchst)(?: mir| mich| jetzt){0,2} (?:nicht|kein\w*) mehr\b|du (?:musst|brauchst) .{2,60} nicht mehr\b",
    r"vergiss,? was ich (?:dir )?(?:über|zu|von|wegen) .{2,80} gesagt",
    r"tu peux (?:maintenant )?(?:de nouveau|à nouveau|recommencer à)\b",
    r"oubliez? ce que (?:j'ai|je t'ai|je vous ai) (?:dit|demandé) (?:sur|à propos|concernant|pour)",
    r"tu (?:n'as|n'es) plus (?:besoin|obligée?) d",
    r"(?:ya )?puedes volver a\b|(?:ya )?puedes .{2,60} (?:otra vez|de nuevo)\b",
    r"olvida lo que (?:te )?(?:dije|pedí) (?:sobre|de|acerca)",
    r"ya no (?:hace falta|es necesario|tienes) que?\b",
)
_OTHER = _Forms(
    # German
    r"(?:bitte )?(?:(?:antworten|schreiben|verwenden|benutzen|nennen|geben|sprechen|planen|machen) sie"
    r"|{DE})\b.{0,160}\b(?:immer|stets|nie(?:mals)?|grundsätzlich|{DE_MARK}|kein\w* .{1,80}\bmehr|nicht mehr|nur noch)\b",
    r"(?:bitte )?{DE_MARK},? (?:bitte )?(?:kein\w*|nur noch|immer|nie(?:mals)?|möchte ich,? dass du|sollst du|{DE})\b",
    r"(?:bitte )?(?:immer,? wenn|jedes ?mal,? wenn|wann immer|sooft) .{2,120}, (?:bitte )?{DE}",
    r"(?:bitte )?(?:wenn|falls) ich .{2,100}, (?:bitte )?{DE}.{0,80}\b(?:immer|stets|nie(?:mals)?)\b",
    r"ich (?:möchte|will|hätte gern),? dass du .{0,60}(?:immer|nie(?:mals)?|{DE_MARK})\b",
    r"(?:bitte )?(?:immer|nie(?:mals)?|nur noch|kein\w* .{2,40} mehr) .{2,60}(?:antworten|schreiben|verwenden|benutzen"
    r"|nennen|vorschlagen)\W*$",
    r"(?:bitte )(?:{DE_MARK} )?kein\w* .{2,60} mehr\W*(?:bitte\W*)?$",
    # French
    r"(?:s'il (?:te|vous) pla[iî]t,? )?{FR}(?:-moi)?\b.{0,120}\b(?:toujours|systématiquement|{FR_MARK})",
    r"(?:s'il (?:te|vous) pla[iî]t,? )?(?:ne |n')(?:me |m'|le |la |les |y |en )?{FR}.{0,30}\b(?:jamais|plus)\b",
    r"{FR_MARK},? (?:s'il (?:te|vous) pla[iî]t,? )?(?:(?:ne |n')(?:me |m')?{FR}|je (?:veux|voudrais"
    r"|préfère) que (?:tu|vous)|plus de|plus d'|pas de|pas d'|{FR})",
    r"(?:à )?chaque fois que (?:je|j').{2,100}, {FR}",
    r"(?:quand|lorsque|si) (?:je|j').{2,100}, {FR}.{0,60}\btoujours\b",
    r"je (?:veux|voudrais|préfère|souhaite) que (?:tu|vous) .{0,60}(?:toujours|jamais|{FR_MARK})",
    # Spanish
    r"(?:por favor,? )?(?!da igual){ES}.{0,120}\b(?:siempre|{ES_MARK})",
    r"(?:por favor,? )?siempre {ES}",
    r"(?:por favor,? )?nunca (?:más )?(?:me |te |lo |la )?{ES_NO}",
    r"(?:por favor,? )?no (?:me |te |lo |la )?{ES_NO}.{0,40}\b(?:más|nunca|{ES_MARK})\b|(?:por favor,? )?no vuelvas a\b",
    r"{ES_MARK},? (?:por favor,? )?(?:no (?:me |te |lo |la )?{ES_NO}|quiero que|respuestas?|nada de|siempre|nunca|{ES})",
    r"cada vez que .{2,100}, {ES}",
    r"(?:cuando|siempre que|si) (?:te )?(?:pregunte|pida|mencione|hable|pregunto|pido).{2,100}, (?:siempre {ES}"
    r"|{ES}.{0,40}\bsiempre)",
    r"quiero que (?:siempre|nunca|{ES_MARK})",
)
_OTHER_NAMED = re.compile(
    r"(?i:bitte |ab jetzt |s'il te plaît,? |à partir de maintenant,? |por favor,? "
    r"|a partir de ahora,? ){0,3}(?i:nenne? mich(?: bitte| einfach| ab jetzt| nur){0,3}|appelle[z]?[- ]moi(?: simplement"
    r"| juste)?|llámame(?: simplemente| solo)?) (?-i:[A-ZÀ-ÖØ-Þ][\w'’-]*)(?:\s*[.!,;]|\s*$| (?i:bitte|s'il|por)\b)"
)
# Most sentences have none of these words: what needs them is not looked for.
_FOREIGN = _words(
    """bitte immer stets nie niemals jetzt sofort heute nun künftig zukünftig zukunft fortan mehr nenn nenne mich hör hören
    wieder vergiss sooft mal jedesmal grundsätzlich weiteres toujours systématiquement jamais plus partir désormais
    dorénavant avenir maintenant fois moi arrête arrêtez nouveau oublie oubliez ordre aujourd recommencer siempre
    nunca más ahora adelante futuro aviso vez vuelvas volver llámame deja para olvida ya puedes"""
)
_RETURNING = _words(
    """again back anymore more longer now stop forget ignore disregard scrap drop mind nevermind cancel scratch undo lift
    changed off over gone void cancelled"""
)
_LETTERS = re.compile(r"[^\W\d_]+")
_QUESTION = _form(
    r"(?:what|where|when do|who|why|how|which|do|does|did|is|are|am|was|were|should|shall|have|has|had|may|might|isn't"
    r"|aren't|don't you)\b"
)
_HEADING = _form(r"(?:{MARK}|{FUTURE}),?(?: please)?:$")
_IDIOM = _form(r"{PLEASE}(?:never ?mind(?! what)\b|never say never|keep (?:up|on|going)\b)")


def recognised(sentence: str) -> tuple[OrderKind, bool] | None:
    """What the sentence is, if it is a standing order or takes one back; and whether it could be said to anybody."""
    lead = _LEAD.match(sentence)
    start = lead.end() if lead is not None else 0
    if _ATTRIBUTED.search(sentence) or _IDIOM.match(sentence, start):
        return None
    for place, is_firm in islice(_clause_starts(sentence, start), CLAUSES_MAX):
        found = _at(sentence[place:], is_firm=is_firm)
        if found is not None:
            return found
    return None


def _clause_starts(sentence: str, start: int) -> Iterator[tuple[int, bool]]:
    """Where clauses start, and whether each is one of its own: `I like it, but never use it` goes on about the speaker."""
    yield start, True
    if (called := _VOCATIVE.match(sentence)) is not None and called.end() > start:
        yield called.end(), True
    for match in _SEPARATOR.finditer(sentence, start):
        if _TOLD.search(sentence, 0, match.start()):
            return
        lead = _LEAD.match(sentence, match.end())
        yield match.end() if lead is None else lead.end(), match["firm"] is not None


def _at(clause: str, *, is_firm: bool) -> tuple[OrderKind, bool] | None:
    """The same for a clause, from its start."""
    words = _LETTERS.findall(clause.lower())
    is_foreign = not _FOREIGN.isdisjoint(words)
    returns = not _RETURNING.isdisjoint(words) and _WITHDRAWAL.match(clause)
    if returns or (is_foreign and _OTHER_WITHDRAWAL.match(clause)):
        return "withdrawal", False
    if _STOP.match(clause):
        return "stop", False
    if _NAMED.match(clause) or (is_foreign and _OTHER_NAMED.match(clause)):
        return "order", False
    asks = clause.rstrip("\"'”’)* ").endswith("?")
    if asks and not re.match(r"(?i)(?:please )?(?:can|could|would|will) you\b|(?:whenever|from now)", clause):
        return None
    if _QUESTION.match(clause) and asks:
        return None
    if _HEADING.match(clause):
        return "order", False
    if is_foreign and _OTHER.match(clause) and not _ONCE.search(clause):
        return "order", False
    return _order_at(clause, is_firm=is_firm)


def _order_at(clause: str, *, is_firm: bool) -> tuple[OrderKind, bool] | None:
    if _POINTLESS.match(clause) or _TO_OTHERS.match(clause) or _TIMES.match(clause):
        return None
    if _ONCE.search(clause) and not re.search(r"(?i)\bfrom (?:now|today|tomorrow|tonight)|starting", clause):
        return None
    to_agent = _ME.search(clause) is not None
    if _SOFTWARE.search(clause) and not re.search(r"(?i)\b(?:i ask|i paste|i share|your|for me|to me|tell me)\b", clause):
        return None
    if _OUTRIGHT.match(clause) or _NO_LONGER.match(clause):
        return "order", False
    if _ASKED.match(clause) and _LASTING.search(clause):
        return "order", False
    if _BY_DEFAULT.match(clause):
        return ("order", False) if to_agent else None
    return ("order", not to_agent) if is_firm and _BARE.match(clause) else None


def is_heading(sentence: str) -> bool:
    """Whether it only announces orders: `From now on:`."""
    lead = _LEAD.match(sentence)
    return _HEADING.match(sentence, lead.end() if lead is not None else 0) is not None


def own_words_in(text: str) -> str:
    """`text` with what is quoted, pasted or code blanked out, every character at its place."""
    own = own_words(text)
    return own + "\n" * (len(text) - len(own)) if len(text) > OWN_CHARS_MAX else own


_FOR_YOU = _form(r"\b(?:you|me|my|please|following|preferences?)\b")
_COLON = re.compile(r":(?:[ \t]*(?P<line>\n|\Z)|(?=\s))")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+\Z")


def is_somebody_elses(own: str, start: int, text: str) -> bool:
    """Whether an order that names nobody is rather a line of a list, or what a heading or a speaker announced."""
    line = text.rfind("\n", 0, start) + 1
    if _LIST_ITEM.match(text[line:start]):
        return True
    first = own.rfind("\n\n", 0, start) + 1
    return any(_announces_others(own, first, colon) for colon in _COLON.finditer(own, first, start))


def _announces_others(own: str, first: int, colon: re.Match[str]) -> bool:
    """Whether the words before a colon give others the word; at the end of a line, unless they say that it is for the agent."""
    begin = 1 + max(first - 1, *(own.rfind(end, first, colon.start()) for end in "\n.!?:"))
    words = own[begin : colon.start()]
    return _TOLD.search(words) is not None or (colon["line"] is not None and _FOR_YOU.search(words) is None)


def in_fiction(own: str, start: int) -> bool:
    """Whether something before this place makes all that follows make-believe."""
    return any(opens_fiction(own[first:last]) for first, last in sentence_spans(own[:start]))
