// SPDX-License-Identifier: Apache-2.0
// Vocabularies of the time before tokenizer.json: vocab.txt of BERT and MPNet; vocab.json with
// merges.txt of GPT-2, RoBERTa and CLIP. What these do not say stands in tokenizer_config.json, or
// is what the classes of `transformers` for them do.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fungi/base/error.h"
#include "fungi/token/bpe.h"
#include "fungi/token/normalizer.h"
#include "fungi/token/pre_tokenizer.h"
#include "fungi/token/tokenizer_parts.h"
#include "fungi/token/wordpiece.h"

namespace fungi::token {
namespace {

template <class Line>
void for_each_line(const FileBytes& file, const Line& line) {
  const std::string_view text = file.text();
  if (const auto at = first_invalid_byte(text))
    fail(fmt::format("expected UTF-8, found the byte 0x{:02X} at {}", uint8_t(text[*at]), *at),
         file.path(), "fetch the file again");
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view one = text.substr(begin, end - begin);
    if (one.ends_with('\r')) one.remove_suffix(1);
    line(one);
    begin = end + 1;
  }
}

bool has_piece(const Vocabulary& vocabulary, std::string_view word) {
  return std::any_of(vocabulary.begin(), vocabulary.end(),
                     [&](const auto& each) { return each.first == word; });
}

int32_t add_special(Tokenizer::Parts& parts, const std::string& word, bool lstrip = false) {
  const int32_t id = parts.model->id_of(word);
  if (id >= 0) parts.add({word, id, true, false, lstrip, false, false});
  return id;
}

// The word that the configuration gives for a role, or else the first that is in the vocabulary.
std::string word_for(const Tokenizer::Parts& parts, const Config& config, const char* role,
                     std::initializer_list<const char*> usual) {
  if (auto said = config.word(role)) return *said;
  for (const char* word : usual)
    if (parts.model->id_of(word) >= 0) return word;
  return *usual.begin();
}

int32_t needed_id(const Tokenizer::Parts& parts, const std::string& word, const FileBytes& file) {
  const int32_t id = parts.model->id_of(word);
  if (id < 0)
    fail(fmt::format("expected '{}' in the vocabulary, found none", word), file.path(),
         "fetch the files of the model again; use one that has tokenizer.json");
  return id;
}

void add_all_special(Tokenizer::Parts& parts, const Config& config, bool strip_mask,
                     std::initializer_list<std::string> words) {
  for (const std::string& word : words) add_special(parts, word);
  add_special(parts, word_for(parts, config, "mask_token", {"[MASK]", "<mask>"}), strip_mask);
}

void read_clip(const Vocabulary& vocabulary, const Merges& merges, const FileBytes& file,
               Tokenizer::Parts& parts) {
  const std::string begin = "<|startoftext|>", end = "<|endoftext|>";
  BpeOptions options;
  options.unknown = end, options.end_of_word = "</w>";
  parts.model = make_bpe(vocabulary, merges, options, file.path());
  using nlohmann::json;
  const json blanks = {{"type", "Replace"}, {"pattern", {{"Regex", "\\s+"}}}, {"content", " "}};
  const json cleaning = {{"type", "Sequence"},
                         {"normalizers", {{{"type", "NFC"}}, blanks, {{"type", "Lowercase"}}}}};
  const json words = {
      {"type", "Split"},
      {"pattern", {{"Regex", "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"}}},
      {"behavior", "Removed"},
      {"invert", true}};
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  parts.normalizer = read_normalizer(cleaning, file.path());
  parts.pre_tokenizer =
      read_pre_tokenizer({{"type", "Sequence"}, {"pretokenizers", {words, bytes}}}, file.path());
  parts.around = {{needed_id(parts, begin, file)}, {needed_id(parts, end, file)}};
  add_special(parts, begin), add_special(parts, end);
}

}  // namespace

void read_vocab_txt(const FileBytes& file, const Config& config, Tokenizer::Parts& parts) {
  Vocabulary vocabulary;
  for_each_line(file, [&](std::string_view line) {
    vocabulary.emplace_back(line, int32_t(vocabulary.size()));
  });
  const std::string unknown = config.word("unk_token").value_or("[UNK]");
  parts.model = make_wordpiece(vocabulary, unknown, "##", 100, file.path());
  const bool lowercase = config.truth("do_lower_case").value_or(true);
  parts.normalizer =
      make_bert_normalizer(true, config.truth("tokenize_chinese_chars").value_or(true),
                           config.truth("strip_accents").value_or(lowercase), lowercase);
  parts.pre_tokenizer = make_bert_pre_tokenizer();
  const std::string begin = word_for(parts, config, "cls_token", {"[CLS]", "<s>"});
  const std::string end = word_for(parts, config, "sep_token", {"[SEP]", "</s>"});
  parts.around = {{needed_id(parts, begin, file)}, {needed_id(parts, end, file)}};
  // MPNet's mask takes the blanks before it.
  add_all_special(parts, config, !has_piece(vocabulary, "[MASK]"),
                  {unknown, begin, end, word_for(parts, config, "pad_token", {"[PAD]", "<pad>"})});
}

void read_vocab_json(const FileBytes& file, const FileBytes& merges_file, const Config& config,
                     Tokenizer::Parts& parts) {
  const Vocabulary vocabulary = read_vocabulary(parse_file(file), file.path());
  Merges merges;
  for_each_line(merges_file, [&](std::string_view line) {
    if (line.empty() || (merges.empty() && line.starts_with("#version"))) return;
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos)
      fail(fmt::format("expected two pieces with a blank between them, found '{}'", line),
           merges_file.path(), "fetch the file again");
    merges.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  });
  if (has_piece(vocabulary, "<|startoftext|>")) return read_clip(vocabulary, merges, file, parts);
  parts.model = make_bpe(vocabulary, merges, {}, file.path());
  parts.pre_tokenizer = make_byte_level(config.truth("add_prefix_space").value_or(false), true);
  if (has_piece(vocabulary, "<s>")) {
    const std::string begin = word_for(parts, config, "cls_token", {"<s>"});
    const std::string end = word_for(parts, config, "sep_token", {"</s>"});
    parts.around = {{needed_id(parts, begin, file)}, {needed_id(parts, end, file)}};
    add_all_special(parts, config, true, {begin, end, "<unk>", "<pad>"});
  } else {
    add_special(parts, "<|endoftext|>");  // GPT-2: nothing stands around its texts
  }
}

}  // namespace fungi::token
