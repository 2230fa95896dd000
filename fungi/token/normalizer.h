// SPDX-License-Identifier: Apache-2.0
// What normalizers share. Internal to this room.
#pragma once

#include "fungi/token/part_json.h"
#include "fungi/token/parts.h"
#include "fungi/token/unicode.h"

namespace fungi::token {

void lower_case(Draft& draft);

template <class Keep>
void keep_chars(Draft& draft, const Keep& keep) {
  const std::string& text = draft.text;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (keep(next_char(text, at)))
      draft.spare.append(text, begin, at - begin);
    else if (draft.spare.empty())
      draft.at_start = false;
  }
  draft.take_spare();
}

NormalizerPtr make_bert_normalizer(PartFields& part);
NormalizerPtr make_bert_normalizer(bool clean, bool chinese, bool strip_accents, bool lowercase);
NormalizerPtr make_precompiled(PartFields& part);

}  // namespace fungi::token
