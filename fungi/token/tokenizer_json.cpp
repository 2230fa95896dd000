// SPDX-License-Identifier: Apache-2.0
// tokenizer.json: everything that Hugging Face's `tokenizers` keeps of a tokenizer.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fungi/base/error.h"
#include "fungi/token/part_json.h"
#include "fungi/token/tokenizer_parts.h"
#include "fungi/token/vocabulary.h"

namespace fungi::token {
namespace {

AddedToken read_added_token(const nlohmann::json& json, const std::string& place) {
  PartFields part(json, "added_tokens", place);
  AddedToken token;
  token.content = part.text("content");
  token.id = checked_id(part.value("id"), token.content, place);
  token.special = part.get("special", false);
  token.single_word = part.get("single_word", false);
  token.lstrip = part.get("lstrip", false);
  token.rstrip = part.get("rstrip", false);
  token.normalized = part.get("normalized", !token.special);
  part.finish();
  return token;
}

}  // namespace

void read_tokenizer_json(const FileBytes& file, Tokenizer::Parts& parts) {
  const nlohmann::json json = parse_file(file);
  const std::string& place = file.path();
  PartFields whole(json, "", place);
  for (const char* left : {"version", "truncation", "padding", "decoder"}) whole.leave(left);
  if (!whole.is_there("model"))
    fail("expected the field 'model' of a tokenizer, found none", place,
         "fetch the file again, or give another");
  const auto part = [&](const char* name) -> const nlohmann::json& {
    static const nlohmann::json nothing;
    return whole.is_there(name) ? whole.value(name) : nothing;
  };
  parts.model = read_model(part("model"), place);
  parts.normalizer = read_normalizer(part("normalizer"), place);
  parts.pre_tokenizer = read_pre_tokenizer(part("pre_tokenizer"), place);
  parts.around = read_post_processor(part("post_processor"), place);
  const nlohmann::json& added = part("added_tokens");
  if (!added.is_null() && !added.is_array()) whole.refuse("added_tokens", "a list");
  for (const nlohmann::json& token : added) parts.add(read_added_token(token, place));
  whole.finish();
}

}  // namespace fungi::token
