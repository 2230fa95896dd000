// SPDX-License-Identifier: Apache-2.0
// WordPiece: the longest piece that a word begins with, then the longest that goes on, and so to
// the end; a word that comes to no end is unknown. Internal to this room.
#pragma once

#include <string>

#include "fungi/token/parts.h"
#include "fungi/token/vocabulary.h"

namespace fungi::token {

ModelPtr make_wordpiece(const Vocabulary& vocabulary, const std::string& unknown,
                        const std::string& continuing, size_t longest_word,
                        const std::string& place);
ModelPtr make_word_level(const Vocabulary& vocabulary, const std::string& unknown,
                         const std::string& place);

}  // namespace fungi::token
