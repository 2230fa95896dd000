// SPDX-License-Identifier: Apache-2.0
// Texts to the numbers that a model knows them by: the very ids of Hugging Face's `tokenizers`.
// Const, shared by threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fungi {

struct Tokens {
  std::vector<int32_t> ids;  // with the special tokens that the model wants around a text
  bool cut = false;          // the text was longer than was asked for
};

class Tokenizer {
 public:
  // Of a model folder, the first that is there of tokenizer.json, vocab.txt, spiece.model,
  // sentencepiece.bpe.model, vocab.json beside merges.txt; or one of these files itself (vocab.json
  // for the last). Error where there is none, or a part of it is not understood. What
  // tokenizer.json says about truncation and padding is left aside: whoever published it was last
  // to use it, and its numbers are rarely the model's.
  static std::shared_ptr<const Tokenizer> open(const std::filesystem::path& folder_or_file);

  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer();

  // At most `max_tokens` ids, special tokens among them: of a longer text the last ones are left
  // out, those that stand around it stay. Error where not even they have room, and where the text
  // is no UTF-8, with the offset of the byte.
  Tokens encode(std::string_view utf8,
                size_t max_tokens = std::numeric_limits<size_t>::max()) const;

  // One more than the largest id: the rows that a table of words must have.
  size_t vocabulary_size() const;
  std::optional<int32_t> mask_id() const;
  // Stands for no part of any text: the start, the end, padding, the mask, the unknown.
  bool is_special(int32_t id) const;
  // As tokenizer_config.json says, where it says a number that can be meant.
  std::optional<size_t> model_max_length() const;
  // Changes whenever ids might: a sum of the files that were read.
  const std::string& fingerprint() const;
  std::string describe() const;  // "WordPiece, 30522 pieces, tokenizer.json"

  struct Parts;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);  // used by open()

 private:
  std::unique_ptr<const Parts> parts_;
};

}  // namespace fungi
