// SPDX-License-Identifier: Apache-2.0
#include "fungi/token/vocabulary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fungi/base/error.h"

namespace fungi::token {
namespace {

// No model has a table of as many words.
constexpr int64_t kMostIds = int64_t(1) << 24;

}  // namespace

int32_t checked_id(const nlohmann::json& id, const std::string& of, const std::string& place) {
  if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= kMostIds)
    fail(fmt::format("expected a whole number from 0 to {} as the id of '{}', found {}",
                     kMostIds - 1, of, id.dump(-1, ' ', true)),
         place, "fetch the file again");
  return id.get<int32_t>();
}

Vocabulary read_vocabulary(const nlohmann::json& pieces, const std::string& place) {
  if (!pieces.is_object())
    fail("expected an object of pieces with their ids as the vocabulary, found something else",
         place, "fetch the file again");
  Vocabulary vocabulary;
  vocabulary.reserve(pieces.size());
  for (const auto& [piece, id] : pieces.items())
    vocabulary.emplace_back(piece, checked_id(id, piece, place));
  return vocabulary;
}

}  // namespace fungi::token
