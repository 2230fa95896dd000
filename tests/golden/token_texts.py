# SPDX-License-Identifier: Apache-2.0
"""Texts that tokenizers get wrong. An entry is a text, or a text and how often it is repeated."""

PLAIN = """
Hello, World!
How do I locate my card?
The quick brown fox jumps over the lazy dog.
don't can't I'll we've they're she'd it's I'm DON'T CAN'T I'LL WE'VE
naïve café déjà vu Ångström ÅNGSTRÖM São Paulo Malmö Łódź
Straße STRASSE ß ẞ Œuvre œuvre Æther ǅ ǆ Ǆ
İstanbul ISPARTA ığdır ŉ ſ K Å
U.S.A. e.g. i.e. Ph.D. 3.14 1,000,000 50% $9.99 €5 £7 ¥8 #1 @you a_b snake_case __init__ C++ C#
http://example.org/a?b=c&d=e#f mailto:me@example.org
2026-11-18T21:33:43Z 12:30pm 1st 2nd 3rd 4th 10^6 x² y₃ ½ ¾ Ⅷ ⅷ ①②③ ٣٤٥ १२३ ๑๒๓
``quoted'' "quoted" 'quoted' “quoted” ‘quoted’ «quoted» „quoted‟ ‹q›
dash - – — ― hyphen‐non‑breaking minus− underscore_ tilde~ caret^ grave` pipe| back\\slash
... … ?! !? ?!?!?! !!!!!! ------ ====== ****** //// \\\\
(a) [b] {c} <d> ⟨e⟩ 「f」 『g』 【h】
camelCase PascalCase SCREAMING_CASE kebab-case iPhone15ProMax XMLHttpRequest v2ray
aaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbb
abc123def456 123abc 0x1F 1e-5 1_000 1.2.3.4 000000000000 12345678901234567890
Ελληνικά ΑΒΓΔ ΣΊΣΥΦΟΣ σίσυφος ς
Русский текст ЁЛКА ёлка Й й Україна їжак
עברית שָׁלוֹם עִבְרִית
العربية السَّلَامُ عَلَيْكُمْ ﷺ لا ﻻ ٱلْحَمْدُ
हिन्दी नमस्ते क्षत्रिय ज़िन्दगी
বাংলা தமிழ் తెలుగు ಕನ್ನಡ മലയാളം සිංහල
ภาษาไทย สวัสดี ก็ น้ำ เก่า
ລາວ ພາສາ ខ្មែរ မြန်မာ
ქართული ენა ᲥᲐᲠᲗᲣᲚᲘ Հայերեն
አማርኛ ᏣᎳᎩ ꮳꮃꭹ ᠮᠣᠩᠭᠣᠯ བོད་ཡིག
中文字符 漢字 简体字，测试。 你好！
日本語のテキスト カタカナ ﾊﾝｶｸ ｶﾞ が が ゔ 々 〆 ー
한국어 텍스트 각 각 ㄱㅏ ᄀ
𠀀 𠮷野家 𪚥 豈 﨑 神 㐀 𫝀
Tiếng Việt ệ ệ ệ quốc ngữ
é é è́ ñ ñ ü ü ö̈ a̐ x̌̌̌ q̃
Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞
ﬁ ﬂ ﬀ ﬃ ﬄ ﬅ ﬆ ﬓ Ĳ ĳ ŀ ŉ
Ｆｕｌｌｗｉｄｔｈ　１２３ ！？ ￥ ﾟ
𝓗𝓮𝓵𝓵𝓸 𝕎𝕠𝕣𝕝𝕕 𝟘𝟙𝟚 ℌ ℕ ℃ ™ ℠ © ® № ℡
⁰¹²³⁴ ₀₁₂ ª º ᵃ ᵇ
∀x∈ℝ: ⌈x⌉ ≥ x ∧ ∑ ∏ ∫ √2 ∞ ≠ ≤ ± × ÷ · °
← → ↔ ⇒ ■ □ ▲ ● ★ ☆ ☎ ☺ ♥ ♫ ✓ ✗ ✈
❤️ ☎️ ✈︎ ⓐ Ⓑ ㊗ ㍿ ㎏ ㏂
😀😃😄 😂🤣 🙏 🔥🔥🔥
👍🏻👍🏽👍🏿 🤦🏽‍♀️ 🧑‍🚀
👨‍👩‍👧‍👦 👩‍❤️‍💋‍👨 🏳️‍🌈 🏴‍☠️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿
🇩🇪🇫🇷🇬 🇺🇸🇺 1️⃣ #️⃣ *️⃣
text😀text ❤text❤ 🍕pizza
🄰 🅱 🆗 🅐 Ⓩ 🈁
a\u00adb soft\u00adhyphen\u00ad \u00ad
zero\u200bwidth\u200cnon\u200djoiner\u2060word\ufeffjoiner
\ufeffbyte order mark
left\u200eto\u200fright \u202aembedded\u202c \u2066isolated\u2069
a\u0000b \u0000 \u0000\u0000
bell\u0007 escape\u001b[31m delete\u007f backspace\u0008 form\u000cfeed vertical\u000btab
c1 \u0080 \u0085 \u008f \u009f controls
replacement \ufffd character\ufffd
private \ue000 \uf8ff \U000f0000 \U0010fffd
not assigned \u0378 \u2fe0 \U0001fffe \ufffe \uffff
combining first \u0301abc \u20e3 \u0489
variation \ufe0e \ufe0f \U000e0100 tags \U000e0041
hangul \u1100\u1161\u11a8 \u1100 \u115f \u3164
language \u2028line \u2029paragraph
tabs\tand\nnew\r\nlines\rhere
\n\n\n three \n \n
  two  leading   and     many    blanks   
nbsp\u00a0thin\u2009hair\u200aideographic\u3000ogham\u1680narrow\u202fmath\u205f.
\u2581already\u2581marked \u2581 \u2581\u2581x
Ġalready Ċbyte Ġ Ġ Ċ Ä ł
##ings ## # ##a a##b the## cats##
[CLS] hello [SEP] [MASK] [PAD] [UNK]
[cls] [mask] [ MASK ] [MASK]. x[MASK]y [MASK][MASK]
hello [MASK] world   [MASK]   end
<s> hello </s> <mask> <pad> <unk> <mask>
hello  <mask>  world<mask>. x<mask>y <mask><mask>
<|endoftext|> hello <|startoftext|> <|begin_of_text|> <|padding|>
<extra_id_0> and <extra_id_1> <extra_id_99> <extra_id_100>
<S> </S> <MASK> <pad > </ s>
<0x0A> <0xFF> <0x00> &amp; &lt; <br/> <html>
special|||IP_ADDRESS|||token |||EMAIL_ADDRESS||| ||| |
wordword one-word word. (word) wordy keyword word
NewWord newword NEWWORD newwords anewword newword!
x = {'a': [1, 2, 3], "b": None}  # comment
def f(x):\n    return x + 1\n\n\nprint(f(2))
\tif (a && b || !c) {\n\t\ta->b = c[0];\n\t}
SELECT * FROM t WHERE a <> 'b' AND c >= 1.5;
<div class="a">text</div><!-- comment -->
$\\alpha^2 + \\beta_{i,j} \\leq \\frac{1}{2}$
The's 's 'S 'T 'RE 'll'll''ll x's'x 'sx 'tis o'clock rock'n'roll
'ſ 'K ’s ’t don’t I’m we’ve
A.B.C. a.b.c ...a a... .a. a,b,c ,a, ;a; :a:
AAAaaaAAA aAaAaA ABCdefGHI abcDEFghi Ab aB A1b2C3
ŀh¾x ¹cd ef² ³dddd ¼½ a\u200cb\u200dc ⓐb ²\u0e01
""".strip("\n").split("\n")

ODD = ["\u00a0", "\u00ad", "\u034f", "\u061c", "\u070f", "\u0e33", "\u115f", "\u1680", "\u180e", "\u2000",
       "\u2007", "\u2009", "\u200b", "\u200c", "\u200d", "\u200e", "\u2011", "\u2019", "\u2028",
       "\u2029", "\u202e", "\u202f", "\u205f", "\u2060", "\u2063", "\u20ac", "\u2103", "\u2126",
       "\u2160", "\u24b6", "\u24d0", "\u2581", "\u3000", "\u3007", "\u309b", "\u30fb", "\u4e00",
       "\u9fff", "\uac00", "\uf900", "\ufb01", "\ufe0f", "\ufe58", "\ufeff", "\uff0c", "\uff21",
       "\ufffc", "\ufffd", "\U0001d400", "\U0001f130", "\U0001f1e6", "\U0001f3fb", "\U0001f600",
       "\U00020000", "\U0002a6d6", "\U0002f800", "\U000e0001", "\u0300", "\u0345", "\u0903", "\u05b0",
       "\u064b", "\u0e48", "\t", "\n", "\r", "\x0b", "\x0c", "\x00", "\x01", "\x1c", "\x1f", "\x7f",
       "\x80", "\x85", "\x9f"]

EDGES = ["", " ", "  ", "   ", "\n", "\t", "\r\n", " \n ", "\u3000", "\u00a0 \u00a0", "\u200b", "\u00ad",
         "\u0301", "\x00", "\ufeff", "\ufffd", ".", "'", "'s", " 's", "a", " a", "a ", " a ", "A", "1", "12",
         "123", "1234", "12345", "é", "e\u0301", "中", "😀", "##", "▁", "[MASK]", " [MASK] ", "<mask>",
         " <mask> ", "<s>", "</s></s>", "[CLS][SEP]", "<|endoftext|>", "\n\n", "\n \n", " \n\n x", "a\n",
         "a\n\nb", "a \n b", "a  b", "a   b", "a \t b", "a    ", "    a", "\r\n\r\n", "a\r\nb", "…", "— —"]

REPEATED = [["ab", 5000], ["a", 101], ["a", 100], ["é", 100], ["é", 101], ["中", 300], ["😀", 40], [" ", 200],
            ["\n", 70], ["a ", 300], ["!", 400], ["x\u0301", 150], ["👨\u200d👩\u200d", 30], ["1", 500],
            ["'s", 60], ["[MASK]", 20], ["A\u030a", 64], ["\u0e33", 50], ["Ab", 90], ["<mask> ", 25]]


def texts():
    all_texts = [line.encode("ascii", "backslashreplace").decode("unicode_escape") for line in
                 (text.replace("\\\\", "\\u005c") for text in PLAIN)]
    all_texts += EDGES
    for odd in ODD:
        all_texts += [odd, f"the{odd}cat", f"a {odd} B"]
    return all_texts + REPEATED


def spelled(entry):
    return entry if isinstance(entry, str) else entry[0] * entry[1]
