// SPDX-License-Identifier: Apache-2.0
// The head that a masked language model guesses words with: dense, activation, norm, and a product
// with a table of all words. What each family calls it stands in word_head.cpp. Internal to this
// room.
#pragma once

#include <memory>

#include "fungi/backbone/recipes.h"
#include "fungi/base/word_head.h"

namespace fungi {

// Of a checkpoint that was read. Error where it has none, naming what was looked for; and where a
// part of it is missing or has another shape.
std::shared_ptr<const WordHead> load_word_head(const Checkpoint& checkpoint, const Reading& reading,
                                               const kernel::Kernel& kernel);

}  // namespace fungi
