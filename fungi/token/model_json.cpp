// SPDX-License-Identifier: Apache-2.0
// The model of tokenizer.json.
#include "fungi/token/bpe.h"
#include "fungi/token/part_json.h"
#include "fungi/token/parts.h"
#include "fungi/token/unigram.h"
#include "fungi/token/wordpiece.h"

namespace fungi::token {
namespace {

// Older files do not say which it is.
std::string kind_of(PartFields& part, const nlohmann::json& json) {
  if (!part.type().empty()) return part.type();
  if (json.contains("merges")) return "BPE";
  if (json.contains("continuing_subword_prefix")) return "WordPiece";
  return json.contains("vocab") && json["vocab"].is_array() ? "Unigram" : "WordLevel";
}

ModelPtr make(PartFields& part, const std::string& kind) {
  const std::string& place = part.place();
  if (kind == "BPE") return read_bpe(part);
  if (kind == "Unigram") return read_unigram(part);
  if (kind != "WordPiece" && kind != "WordLevel") part.refuse_type();
  const Vocabulary vocabulary = read_vocabulary(part.value("vocab"), place);
  const auto unknown = part.get<std::string>("unk_token", "[UNK]");
  if (kind == "WordLevel") return make_word_level(vocabulary, unknown, place);
  const auto continuing = part.get<std::string>("continuing_subword_prefix", "##");
  return make_wordpiece(vocabulary, unknown, continuing,
                        part.get<unsigned long>("max_input_chars_per_word", 100), place);
}

}  // namespace

ModelPtr read_model(const nlohmann::json& json, const std::string& place) {
  PartFields part(json, "model", place);
  ModelPtr made = make(part, kind_of(part, json));
  part.finish();
  return made;
}

}  // namespace fungi::token
