#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/token: small tokenizers of every kind, trained here, and the ids that Hugging Face's `tokenizers` (0.23)
and, for its own files, `sentencepiece` give to the texts of token_texts.py. A developer's tool; the tests read its files.

Run: python make_token.py            everything but the next
     python make_token.py sums DATA  sums.json: of the ids of whole data sets, which the repository does not hold
"""
import base64
import glob
import gzip
import io
import json
import pathlib
import sys
import unicodedata

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers as N, pre_tokenizers as P,
                        processors, trainers)

from token_texts import spelled, texts

HERE = pathlib.Path(__file__).parent
OUT = HERE / "token"
ROOT = HERE.parent.parent

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
POSSESSIVE = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
              r"|\s*[\r\n]|\s+(?!\S)|\s")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def corpus():
    """What the vocabularies are learnt from: the documents of this project, and some of the texts."""
    files = [ROOT / "README.md", ROOT / "HACKING.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [line for file in files for line in file.read_text().split("\n")] + [spelled(t) for t in texts()[:80]] * 3


def special(*words, **flags):
    return [AddedToken(word, special=True, normalized=False, **flags) for word in words]


def template(before, behind, tokenizer):
    names = list(dict.fromkeys(before + behind))
    return processors.TemplateProcessing(single=" ".join([*before, "$A", *behind]),
                                         special_tokens=[(name, tokenizer.token_to_id(name)) for name in names])


def train(tokenizer, trainer):
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def bert(name, lowercase, size=640, **options):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = N.BertNormalizer(lowercase=lowercase, **options)
    t.pre_tokenizer = P.BertPreTokenizer()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    train(t, trainers.WordPieceTrainer(vocab_size=size, special_tokens=special(*words), limit_alphabet=200))
    if lowercase:
        t.post_processor = template(["[CLS]"], ["[SEP]"], t)
        t.decoder = decoders.WordPiece()
    else:
        t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        t.enable_truncation(16)
        t.enable_padding(length=16)
    if name == "bert_added":
        t.add_tokens([AddedToken("newword", normalized=True, single_word=True), AddedToken("NewWord", normalized=False),
                      AddedToken("word", normalized=True, single_word=True), AddedToken("don't", normalized=True, rstrip=True),
                      AddedToken("É", normalized=True, lstrip=True)])
    return t


def byte_level(size, words, normalizer=None, pattern=None, prefix=False, ignore_merges=False, suffix=None, **split):
    options = {"end_of_word_suffix": suffix, "unk_token": words[-1]} if suffix else {}
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges, **options))
    if normalizer:
        t.normalizer = normalizer
    if pattern:
        t.pre_tokenizer = P.Sequence([P.Split(Regex(pattern), **split), P.ByteLevel(add_prefix_space=prefix, use_regex=False)])
    else:
        t.pre_tokenizer = P.ByteLevel(add_prefix_space=prefix)
    suffixes = {"end_of_word_suffix": suffix} if suffix else {}
    return train(t, trainers.BpeTrainer(vocab_size=size, special_tokens=special(*words), show_progress=False,
                                        initial_alphabet=P.ByteLevel.alphabet(), **suffixes))


def roberta():
    t = byte_level(520, ["<s>", "<pad>", "</s>", "<unk>"])
    t.add_special_tokens(special("<mask>", lstrip=True))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return t


def modernbert():
    t = byte_level(480, ["|||IP_ADDRESS|||", "<|padding|>"], normalizer=N.NFC())
    t.add_special_tokens(special("<|endoftext|>", "[UNK]", "[CLS]", "[SEP]", "[PAD]"))
    t.add_special_tokens(special("[MASK]", lstrip=True))
    t.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    t.post_processor = template(["[CLS]"], ["[SEP]"], t)
    return t


def llama3(pattern=LLAMA3, **options):
    t = byte_level(420, ["<|begin_of_text|>", "<|endoftext|>"], pattern=pattern, behavior="isolated", **options)
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template(["<|begin_of_text|>"], [], t)])
    return t


def clip():
    t = byte_level(700, ["<|startoftext|>", "<|endoftext|>"], pattern=CLIP, behavior="removed", invert=True, suffix="</w>",
                   normalizer=N.Sequence([N.NFC(), N.Replace(Regex(r"\s+"), " "), N.Lowercase()]))
    t.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0), trim_offsets=False,
                                                    add_prefix_space=False)
    return t


def metaspace_bpe(normalizer, pre_tokenizer, alphabet=120, **options):
    """As made from Llama's and Gemma's SentencePiece files: pieces for bytes, learnt with blanks as a sign."""
    learner = Tokenizer(models.BPE(unk_token="<unk>"))
    learner.pre_tokenizer = P.Metaspace()
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    train(learner, trainers.BpeTrainer(vocab_size=620, limit_alphabet=alphabet, show_progress=False,
                                       special_tokens=special("<unk>", "<s>", "</s>", *bytes_)))
    model = json.loads(learner.to_str())["model"]
    merges = [tuple(m) for m in model["merges"]]
    t = Tokenizer(models.BPE(model["vocab"], merges, unk_token="<unk>", fuse_unk=True, **options))
    if normalizer:
        t.normalizer = normalizer
    if pre_tokenizer:
        t.pre_tokenizer = pre_tokenizer
    t.add_special_tokens(special("<unk>", "<s>", "</s>"))
    t.post_processor = template(["<s>"], [], t)
    return t


def rules():
    """A small table of replacements, with rules of several characters and ones that drop them."""
    table = {"\u00ad": "", "\u200b": " ", "\ufeff": "", "\u3000": " ", "\t": " ", "\n": " ", "\r": " ",
             "\u0345": "\u03b9", "\u00a0": " ", "\x7f": "", "…": "...", "\u2581": " "}
    for first, last in [(0xC0, 0x250), (0x1E00, 0x1E40), (0x2150, 0x2190), (0x2460, 0x2500), (0xFB00, 0xFB07),
                        (0xFF01, 0xFF30), (0x1D400, 0x1D434), (0xAC00, 0xAC40)]:
        for code in range(first, last):
            c, wide = chr(code), unicodedata.normalize("NFKC", chr(code))
            if wide != c:
                table[c] = wide
            apart = unicodedata.normalize("NFD", c)
            if apart != c:
                table[apart] = wide
    return table


def sentencepiece_model():
    OUT.mkdir(exist_ok=True)
    tsv = OUT / "rules.tsv"
    tsv.write_text("".join("\t".join(" ".join(f"{ord(c):X}" for c in text) for text in rule) + "\n"
                           for rule in sorted(rules().items())))
    model = io.BytesIO()
    lines = [line for line in corpus() if line.strip() and "\x00" not in line]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=420, model_type="unigram", pad_id=0, eos_id=1, unk_id=2,
        bos_id=-1, character_coverage=0.98, normalization_rule_tsv=str(tsv), hard_vocab_limit=False, num_threads=1,
        minloglevel=2)
    tsv.unlink()
    return model.getvalue()


def unigram(proto, normalizer, pre_tokenizer, byte_fallback=False):
    pieces = [(piece.piece, piece.score) for piece in proto.pieces]
    if byte_fallback:
        pieces += [(f"<0x{byte:02X}>", -20.0) for byte in range(256)]
    t = Tokenizer(models.Unigram(pieces, 2, byte_fallback))
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer
    return t


def t5(proto, charsmap):
    t = unigram(proto, N.Precompiled(charsmap), P.Sequence([P.WhitespaceSplit(), P.Metaspace()]))
    t.add_special_tokens(special("<pad>", "</s>", "<unk>", *[f"<extra_id_{i}>" for i in range(9, -1, -1)]))
    t.post_processor = template([], ["</s>"], t)
    return t


def xlm_roberta(proto, charsmap):
    t = unigram(proto, N.Sequence([N.Precompiled(charsmap), N.Strip(left=False, right=True), N.Replace(Regex(" {2,}"), "▁")]),
                P.Metaspace(prepend_scheme="always"))
    t.add_special_tokens(special("<s>", "</s>"))
    t.add_special_tokens(special("<mask>", lstrip=True))
    t.post_processor = template(["<s>"], ["</s>"], t)
    return t


def albert(proto, charsmap):
    cleaning = [N.Replace("``", '"'), N.Replace("''", '"'), N.NFKD(), N.StripAccents(), N.Lowercase(), N.Precompiled(charsmap),
                N.Replace(Regex(" {2,}"), " ")]
    t = unigram(proto, N.Sequence(cleaning), P.Metaspace(), byte_fallback=True)
    t.add_special_tokens(special("[CLS]", "[SEP]", "[MASK]"))
    t.post_processor = template(["[CLS]"], ["[SEP]"], t)
    return t


def words(normalizer, pre_tokenizer):
    """Whole words: ids show where the texts were split."""
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer
    found = {}
    for text in texts()[:150]:
        normal = normalizer.normalize_str(spelled(text)) if normalizer else spelled(text)
        for piece, _ in pre_tokenizer.pre_tokenize_str(normal):
            found[piece] = found.get(piece, 0) + 1
    vocabulary = ["[UNK]"] + sorted(found, key=lambda piece: (-found[piece], piece))[:300]
    t.model = models.WordLevel({piece: i for i, piece in enumerate(vocabulary)}, unk_token="[UNK]")
    return t


def everything():
    spiece = sentencepiece_model()
    proto = sentencepiece_model_pb2.ModelProto.FromString(spiece)
    charsmap = proto.normalizer_spec.precompiled_charsmap
    yield "bert_uncased", bert("bert_uncased", True)
    yield "bert_cased", bert("bert_cased", False, strip_accents=False)
    yield "bert_added", bert("bert_added", True, 500, handle_chinese_chars=False, clean_text=False)
    yield "roberta", roberta()
    yield "modernbert", modernbert()
    yield "llama3", llama3(ignore_merges=True)
    yield "possessive", llama3(POSSESSIVE, prefix=True)
    yield "o200k", llama3(O200K)
    yield "clip", clip()
    yield "llama2", metaspace_bpe(N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")]), None, byte_fallback=True)
    yield "gemma", metaspace_bpe(N.Replace(" ", "▁"), P.Split(" ", "merged_with_previous"), byte_fallback=True)
    yield "metaspace_bpe", metaspace_bpe(N.Sequence([N.Replace("``", '"'), N.Strip()]), P.Metaspace(prepend_scheme="first"), alphabet=80)
    yield "t5", t5(proto, charsmap)
    yield "xlm_roberta", xlm_roberta(proto, charsmap)
    yield "albert", albert(proto, charsmap)
    yield "words_whitespace", words(N.Sequence([N.NFKC(), N.Strip(), N.Lowercase()]), P.Whitespace())
    yield "words_punctuation", words(N.Nmt(), P.Sequence([P.WhitespaceSplit(), P.Punctuation("merged_with_previous"), P.Digits()]))
    yield "words_digits", words(N.NFD(), P.Sequence([P.CharDelimiterSplit(" "), P.Digits(individual_digits=True),
                                                     P.Punctuation("contiguous")]))
    yield "words_next", words(None, P.Sequence([P.Split(Regex(r"[A-Z\p{P}]"), "merged_with_next"), P.Punctuation("removed")]))
    yield "words_regex", words(None, P.Split(Regex(r"\b[^\W\d_]{2,3}?|\d+|(?>\s+)|^\S|(?=[!?])"), "isolated"))
    (OUT / "spiece").mkdir(exist_ok=True)
    (OUT / "spiece" / "spiece.model").write_bytes(spiece)


def mixed(ids, sum_=0xcbf29ce484222325):
    """The sum of a text's ids: FNV-1a with an id in the place of a byte, and one more for the end."""
    for id_ in [*ids, 0xFFFFFFFF]:
        sum_ = ((sum_ ^ id_) * 0x100000001b3) & 0xFFFFFFFFFFFFFFFF
    return sum_


def short(ids):
    return ids if len(ids) <= 60 else [len(ids), f"{mixed(ids):016x}"]


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n")


def sentencepiece_ids(model, text):
    """As T5's class of `transformers` does it, for texts without special tokens."""
    return model.encode(text) + [1]


def main():
    OUT.mkdir(exist_ok=True)
    write_json(OUT / "texts.json", texts())
    for name, t in everything():
        folder = OUT / name
        folder.mkdir(exist_ok=True)
        t.save(str(folder / "tokenizer.json"), pretty=False)
        t = Tokenizer.from_file(str(folder / "tokenizer.json"))
        t.no_truncation()
        t.no_padding()
        ids = [t.encode(spelled(text)).ids for text in texts()]
        write_json(folder / "ids.json", [short(each) for each in ids])
        print(name, t.get_vocab_size(), (folder / "tokenizer.json").stat().st_size)
    model = sentencepiece.SentencePieceProcessor(model_file=str(OUT / "spiece" / "spiece.model"))
    write_json(OUT / "spiece" / "ids.json", [short(sentencepiece_ids(model, spelled(text))) for text in texts()])


def published_gpt2(folder):
    t = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    t.pre_tokenizer = P.ByteLevel(add_prefix_space=False)
    t.add_special_tokens(special("<|endoftext|>"))
    return t


def published_clip(folder):
    """OpenAI's file of merges, by the rules of their code: bytes, bytes at the end of words, what merges make, two more."""
    lines = gzip.decompress((folder / "bpe_simple_vocab_16e6.txt.gz").read_bytes()).decode().split("\n")[1:48895]
    merges = [tuple(line.split()) for line in lines]
    seen = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = [chr(byte) for byte in seen] + [chr(256 + i) for i in range(256 - len(seen))]
    pieces = alphabet + [c + "</w>" for c in alphabet] + ["".join(m) for m in merges] + ["<|startoftext|>", "<|endoftext|>"]
    t = clip()
    t.model = models.BPE({piece: i for i, piece in enumerate(pieces)}, merges, unk_token="<|endoftext|>",
                         end_of_word_suffix="</w>")
    t.post_processor = processors.RobertaProcessing(("<|endoftext|>", 49407), ("<|startoftext|>", 49406), trim_offsets=False,
                                                    add_prefix_space=False)
    # The tokens that were added belong to the small vocabulary: without them, as no text here has them.
    whole = json.loads(t.to_str())
    whole["added_tokens"] = []
    return Tokenizer.from_str(json.dumps(whole))


def published(folder):
    if folder.name == "gpt2":
        return published_gpt2(folder)
    if folder.name == "clip":
        return published_clip(folder)
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def sums(data):
    found = {}
    for name in ("bert-base-uncased", "t5", "roberta", "gpt2", "clip"):
        t = published(data / "tokenizers" / name)
        t.no_truncation()
        t.no_padding()
        for file in sorted(glob.glob(str(data / "text" / "*" / "*.tsv"))):
            lines = open(file, encoding="utf-8", newline="\n").read().removesuffix("\n").split("\n")
            sum_ = 0xcbf29ce484222325
            for encoding in t.encode_batch([line.split("\t", 1)[-1] for line in lines]):
                sum_ = mixed(encoding.ids, sum_)
            key = str(pathlib.Path(file).relative_to(data / "text"))
            found.setdefault(name, {})[key] = [len(lines), f"{sum_:016x}"]
    (OUT / "sums.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    sums(pathlib.Path(sys.argv[2])) if sys.argv[1:2] == ["sums"] else main()
