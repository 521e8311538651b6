"""Function words of the languages that the lexicon knows, folded: they tell the language and carry no meaning of their own."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOPWORDS: dict[str, frozenset[str]] = {
    "english": _words(
        "a an and are as at be been being but by can could did do does doing done for from had has have having he her hers "
        "him his how i if in into is it its itself just me might my myself of on or our ours she should so some such than "
        "that the their theirs them then there these they this those to too was we were what when where which while who "
        "whom whose why will with would you your yours yourself am about also any both each few more most other own same "
        "very not no nor only over under again once here all because between during before after above below up down out "
        "off further until s t d ll m re ve don didn isn wasn doesn hasn haven won wouldn couldn shouldn aren weren im id "
        "ive youre let lets get gets getting got gotten"
    ),
    "german": _words(
        "aber alle allem allen aller als also am an auch auf aus bei beim bin bis bist da damit dann das dass dein deine dem "
        "den denn der des die dies diese diesem diesen dieser dieses doch dort du durch ein eine einem einen einer eines er "
        "es etwas euch euer fur hab habe haben hast hat hatte hatten ich ihm ihn ihnen ihr ihre im in ins ist ja jede jeder "
        "kann kein keine konnte man mein meine meinem meinen meiner mich mir mit muss nach nicht noch nun nur ob oder ohne "
        "sehr sein seine sich sie sind so uber um und uns unser unter vom von vor wann war waren warum was weil welche "
        "welcher welches wenn wer werde werden wie wieder will wir wird wo wurde wurden zu zum zur"
    ),
    "french": _words(
        "a ai ainsi alors au aussi autre aux avais avait avec avez avoir avons bien car ce ceci cela celle celui ces cet "
        "cette chez comme comment c d dans de des donc dont du elle elles en encore es est et etais etait ete etes etre eu "
        "eux faire fait il ils j je l la le les leur leurs lui m ma mais me meme mes moi mon n ne nos notre nous on ont ou "
        "par pas peu pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se ses si son sont suis sur t "
        "ta te tes toi ton tous tout toute toutes tres tu un une vos votre vous y"
    ),
    "spanish": _words(
        "a al algo como con cual cuando cuanto cuantos de del desde donde dos el ella ellas ellos en entre era eran eres es "
        "esa ese eso esta estaba estan estar estas este esto estos estoy fue fueron ha habia han has hasta hay he la las le "
        "les lo los mas me mi mis mucho muy nada ni no nos nosotros o para pero por porque que quien quienes se ser si sin "
        "sobre son soy su sus tambien te tener tengo ti tiene tienen todo todos tu tus un una unas uno unos y ya yo"
    ),
    "italian": _words(
        "a ad ai al alla alle allo anche avere aveva c che chi ci come con cosa cui d da dal dalla dei del della delle dello "
        "di dove e ed era erano essere fa gli ha hai hanno ho i il in io l la le lei li lo loro lui ma me mi mia mie miei "
        "mio molto ne nei nel nella noi non nostro o ogni per perche piu po quale quali quando quanti quanto quel quella "
        "quello questa queste questi questo sei si sia siamo sono sta su sua sue sui sul sulla suo suoi te ti tu tua tuo "
        "tutti tutto un una uno voi"
    ),
    "portuguese": _words(
        "a ao aos as ate com como da das de dela dele depois do dos e ela elas ele eles em entre era essa esse esta estao "
        "estava este eu foi foram ha isso isto ja la lhe mais mas me mesmo meu meus minha minhas muito na nas nao nem no nos "
        "nossa nosso num numa o onde os ou para pela pelo por porque qual quais quando quanto quantos que quem se sem ser "
        "seu seus so sou sua suas tambem te tem tenho ter teu tinha tive tu um uma umas uns vai voce voces"
    ),
    "dutch": _words(
        "aan al alles als ben bij daar dan dat de der deze die dit doen door dus een en er ge geen had heb hebben heeft hem "
        "het hier hij hoe hun iets ik in is ja je jij jouw jullie kan kon maar me meer met mij mijn moet na naar niet niets "
        "nog nu of om omdat ons onze ook op over te tegen toch toen tot u uit uw van veel voor waar waarom wanneer want "
        "waren was wat we wel welke werd wie wij wil worden zal ze zei zich zij zijn zo zonder zou"
    ),
}
