#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/golden/view/word_deletion.json: texts with given words left out, as nlpaug's RandomWordAug deletes them.

pip install nlpaug==1.1.11; the library's own sampler is replaced by the indices that are listed.
"""
import json
import pathlib
import random

from nlpaug.augmenter.word import RandomWordAug

TEXTS = [
    "How do I locate my card?", "I don't know what's wrong, e.g. my card-number (1234) isn't working!", "Hi", "Hi there",
    "hi There", "...", "What is 50% of $3.50 ?", "I", "A b", "I am here.", "I'm here", "\"Quoted\" text, 'single'",
    "snake_case _ __ and-dash", "\u201ccurly\u201d \u2026 5\u20ac \U0001f600 ok", "a b c d e f g h i j", "a b c d e f g h i j k",
    "Wait . . . what ?", "Wait... what?! [sic] {x} <y> (z)", "MIXED Case words HERE", "McDonald runs", "the END",
    "  padded   text  ", "U.S.A. is big", "100 % sure : yes ; no", "\u00c9l est\u00e1 aqu\u00ed", "\u00c9L est\u00e1", "iPhone is",
    "word\u00a0with\u2003odd\u2028blanks\tand\nlines", "e\u0301tude cafe\u0301 nai\u0308ve", "\u4e2d\u6587 \u5b57\u7b26 test",
    "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 and \u0627\u0644\u0639\u0631\u0628\u064a\u0629", "a\u200db zero\u200bwidth",
    "Hello , \" quoted ! \" and ' more ? ' end .", "( a ) [ b ] { c } < d >", "((nested)) brackets", "A1 first", "\u01c5 titlecase",
    "\u0417\u0434\u0440\u0430\u0432\u0441\u0442\u0432\u0443\u0439 \u043c\u0438\u0440", "@user #tag https://t.co/x \u2764\ufe0f :-)", "x" * 40 + " y",
    "!? ! ? , , . .", "one , two",
]


def without(augmenter, text, indices):
    augmenter.sample = lambda candidates, count: list(indices)
    return augmenter.augment(text)[0]


def main():
    random.seed(7)
    cases = []
    for text in TEXTS:
        augmenter = RandomWordAug(action="delete", aug_p=0.1)
        stripped = text.strip()
        tokens = augmenter.tokenizer(stripped)
        candidates = augmenter.pre_skip_aug(tokens)
        count = min(augmenter.generate_aug_cnt(len(tokens)), len(candidates))
        sets = [[i] for i in candidates]
        for size in (2, 3):
            if len(candidates) >= size:
                sets += [sorted(random.sample(candidates, size)) for _ in range(4)] + [candidates[:size]]
        if len(candidates) > 1:
            sets.append(candidates)
        cases.append({"text": text, "tokens": tokens, "candidates": candidates, "count": count,
                      "deletions": [{"indices": s, "out": without(augmenter, text, s)} for s in sets]})
    counts = {n: RandomWordAug(action="delete", aug_p=0.1).generate_aug_cnt(n) for n in range(1, 121)}
    file = pathlib.Path(__file__).parent / "view" / "word_deletion.json"
    file.write_text(json.dumps({"library": "nlpaug 1.1.11", "cases": cases, "counts": counts}, ensure_ascii=True,
                               indent=0) + "\n")


if __name__ == "__main__":
    main()
