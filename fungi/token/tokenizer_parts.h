// SPDX-License-Identifier: Apache-2.0
// A whole tokenizer, as the readers of the various files fill it. Internal to this room.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "fungi/checkpoint/file_bytes.h"
#include "fungi/token/added_tokens.h"
#include "fungi/token/parts.h"
#include "fungi/token/tokenizer.h"

namespace fungi {

struct Tokenizer::Parts {
  token::AddedTokens added;  // looked for in the text as it came
  token::NormalizerPtr normalizer;
  token::AddedTokens added_normalized;  // and in the normalised one
  token::PreTokenizerPtr pre_tokenizer;
  token::ModelPtr model;
  token::Around around;
  std::set<int32_t> special;
  int32_t largest_id = -1;
  std::optional<int32_t> mask;
  std::optional<size_t> longest;
  std::string fingerprint, file;

  void add(const token::AddedToken& token);  // when normalizer and model are there
};

namespace token {

// What tokenizer_config.json says, empty if there is none.
struct Config {
  explicit Config(const std::filesystem::path& folder);
  ~Config();

  std::optional<bool> truth(const std::string& name) const;
  // A word, which may stand there with its flags.
  std::optional<std::string> word(const std::string& name) const;
  std::optional<size_t> model_max_length() const;

  std::shared_ptr<const FileBytes> file;

 private:
  std::unique_ptr<nlohmann::json> json_;
};

void read_tokenizer_json(const FileBytes& file, Tokenizer::Parts& parts);
void read_vocab_txt(const FileBytes& file, const Config& config, Tokenizer::Parts& parts);
void read_vocab_json(const FileBytes& vocabulary, const FileBytes& merges, const Config& config,
                     Tokenizer::Parts& parts);
void read_sentencepiece(const FileBytes& file, Tokenizer::Parts& parts);

nlohmann::json parse_file(const FileBytes& file);

}  // namespace token
}  // namespace fungi
