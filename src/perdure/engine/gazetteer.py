"""States, countries, and cities that are known under several names. Written by hand; far from complete."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from perdure.engine.spelling import folded, plain

Where = tuple[str, str]
"""Country and state; the state may be empty."""

_US = (
    "alabama=al alaska=ak arizona=az arkansas=ar california=ca colorado=co connecticut=ct delaware=de florida=fl "
    "georgia=ga hawaii=hi idaho=id illinois=il indiana=in iowa=ia kansas=ks kentucky=ky louisiana=la maine=me maryland=md "
    "massachusetts=ma michigan=mi minnesota=mn mississippi=ms missouri=mo montana=mt nebraska=ne nevada=nv "
    "new_hampshire=nh new_jersey=nj new_mexico=nm new_york=ny north_carolina=nc north_dakota=nd ohio=oh oklahoma=ok "
    "oregon=or pennsylvania=pa rhode_island=ri south_carolina=sc south_dakota=sd tennessee=tn texas=tx utah=ut vermont=vt "
    "virginia=va washington=wa west_virginia=wv wisconsin=wi wyoming=wy district_of_columbia=dc puerto_rico=pr "
)
_CANADA = (
    "ontario=on quebec=qc british_columbia=bc alberta=ab manitoba=mb saskatchewan=sk nova_scotia=ns new_brunswick=nb "
    "newfoundland=nl prince_edward_island=pe yukon=yt nunavut=nu"
)
_AUSTRALIA = "new_south_wales=nsw victoria=vic queensland=qld western_australia=wa south_australia=sa tasmania=tas"
# The first spelling names the country here; two letters are codes, which count after a comma only.
_COUNTRY_LINES = """
united states, united states of america, usa, us, america, the states, estados unidos, vereinigte staaten, сша
united kingdom, uk, gb, great britain, britain, england, scotland, wales, northern ireland
germany, deutschland, de, allemagne, alemania, германия, 德国
france, fr, frankreich, francia
spain, españa, es, spanien, espagne
italy, italia, it, italien, italie
portugal, pt
netherlands, holland, nl, nederland, niederlande
belgium, be, belgique, belgie, belgien
switzerland, schweiz, suisse, svizzera, ch
austria, österreich, at
poland, polska, pl, polen
czech republic, czechia, cz, česko
hungary, magyarország, hu, ungarn
sweden, sverige, se
norway, norge, no
denmark, danmark, dk
finland, suomi, fi
ireland, éire, ie, irland
greece, hellas, gr, ελλάδα, griechenland
turkey, türkiye, tr
russia, russian federation, ru, россия
ukraine, ua, україна, украина
romania, românia, ro
bulgaria, bg
serbia, srbija
croatia, hrvatska, hr, kroatien
slovakia, slovensko, sk
slovenia, slovenija, si
iceland, ísland
israel, il
egypt, eg
morocco, maroc
south africa, za
nigeria, ng
niger
kenya, ke
india, in, bharat, भारत
pakistan, pk
bangladesh
sri lanka
china, cn, prc, 中国
taiwan, tw, 台湾
japan, jp, 日本, nippon
south korea, korea, kr, republic of korea, 한국
vietnam, viet nam, vn
thailand, th
indonesia
malaysia, my
singapore, sg
philippines, ph
australia, au
new zealand, nz
canada, ca
mexico, méxico, mx, mexiko
brazil, brasil, br, brasilien
argentina, ar, argentinien
chile, cl
colombia, co, kolumbien
peru, perú
cuba
dominica
dominican republic
georgia, sakartvelo
iran, ir
iraq, irak
united arab emirates, uae
saudi arabia
"""
# Spellings of one city, current or old.
_CITY_LINES = """
new york city, nyc, new york ny
los angeles, los angeles ca
san francisco, sf
munich, münchen, monaco di baviera
cologne, köln
nuremberg, nürnberg
hanover, hannover
brunswick, braunschweig
vienna, wien, vienne
zurich, zürich
geneva, genève, genf, ginevra
basel, basle, bâle
bern, berne
rome, roma, rom
milan, milano, mailand
florence, firenze, florenz
venice, venezia, venedig
naples, napoli, neapel
turin, torino
genoa, genova, genua
lisbon, lisboa, lissabon
seville, sevilla
brussels, bruxelles, brussel, brüssel
antwerp, antwerpen, anvers
ghent, gent, gand
bruges, brugge
the hague, den haag, hague
copenhagen, københavn, kopenhagen
gothenburg, göteborg
prague, praha, prag
warsaw, warszawa, warschau
krakow, kraków, cracow, krakau
gdansk, gdańsk, danzig
wroclaw, wrocław, breslau
bucharest, bucurești, bukarest
belgrade, beograd, belgrad
athens, athina, αθήνα, athen
thessaloniki, θεσσαλονίκη, saloniki
moscow, moskva, москва, moskau
saint petersburg, санкт петербург, sankt peterburg
kyiv, kiev, київ, киев, kiew
lviv, lvov, львів
odesa, odessa
istanbul, i̇stanbul
beijing, peking, 北京
shanghai, 上海
guangzhou, canton, 广州
hong kong, 香港
taipei, 台北
tokyo, tōkyō, 東京, 东京
kyoto, 京都
osaka, 大阪
seoul, 서울
busan, pusan, 부산
mumbai, bombay
kolkata, calcutta
chennai, madras
bengaluru, bangalore
pune, poona
varanasi, benares
ho chi minh city, saigon
yangon, rangoon
mexico city, ciudad de méxico, cdmx
havana, la habana
cairo, al qahirah
alexandria, al iskandariyah
jerusalem, yerushalayim, al quds
tel aviv, tel aviv yafo
damascus, dimashq
"""
# Short forms and wider names that may mean something else.
OPEN = (
    ("new york city", "new york"),
    ("los angeles", "la"),
    ("washington", "dc"),
    ("las vegas", "vegas"),
    ("quebec city", "quebec"),
    ("philadelphia", "philly"),
    ("san francisco", "frisco"),
    ("frankfurt", "frankfurt am main"),
    ("frankfurt", "frankfurt an der oder"),
    ("rio de janeiro", "rio"),
    ("saint petersburg", "petersburg"),
    ("new orleans", "nola"),
    ("buenos aires", "baires"),
    ("kuala lumpur", "kl"),
    ("united kingdom", "england"),
    ("united kingdom", "scotland"),
    ("united kingdom", "wales"),
)


def _states() -> Iterator[tuple[str, Where]]:
    for country, listed in (("united states", _US), ("canada", _CANADA), ("australia", _AUSTRALIA)):
        for pair in listed.split():
            name, code = (part.replace("_", " ") for part in pair.split("="))
            yield name, (country, name)
            yield code, (country, name)


def _spellings(text: str) -> Iterator[tuple[str, str]]:
    for line in text.strip().splitlines():
        first, *others = (folded(plain(spelling)) for spelling in line.split(","))
        yield from ((spelling, first) for spelling in (first, *others))


CITIES = dict(_spellings(_CITY_LINES))
COUNTRIES = dict(_spellings(_COUNTRY_LINES))
QUALIFIERS: dict[str, set[Where]] = {}
for _name, _where in itertools.chain(_states(), ((name, (country, "")) for name, country in COUNTRIES.items())):
    QUALIFIERS.setdefault(_name, set()).add(_where)
STATE_NAMES = frozenset(name for name, _ in _states() if len(name) > 3)
KNOWN = frozenset(CITIES.values()) | frozenset(COUNTRIES.values()) | STATE_NAMES
