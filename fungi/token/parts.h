// SPDX-License-Identifier: Apache-2.0
// What a tokenizer is made of, in the order in which a text passes through. All parts are const and
// shared by threads; what changes lives in drafts and scratch of the caller's.
// Internal to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fungi::token {

// A stranger's file can make a text longer and longer; none that is meant comes near this.
constexpr size_t longest_result(size_t bytes) { return 64 * bytes + 4096; }
void require_length(size_t bytes, size_t most);

// A text, or what stands between two added tokens of it, while it is normalised.
struct Draft {
  std::string text, spare;
  bool at_start = true;             // its first character is the first of the whole text
  size_t most = longest_result(0);  // bytes that it may become

  void require_lengths() const { require_length(text.size() + spare.size(), most); }

  // For a step that writes its result into `spare`.
  void take_spare() { text.swap(spare), spare.clear(); }
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(Draft& draft) const = 0;  // `spare` is empty before and after
};

// Parts of a text that the model looks at one by one: bytes begin to end of it.
struct Span {
  size_t begin, end;
};
struct Pieces {
  std::string text;
  std::vector<Span> spans;  // none is empty
  bool at_start = true;     // as in a Draft, of the first one
  std::string spare_text;
  std::vector<Span> spare_spans;
  size_t most = longest_result(0);

  std::string_view of(Span span) const {
    return std::string_view(text).substr(span.begin, span.end - span.begin);
  }
  void add_spare(size_t begin, size_t end) {
    if (begin < end) spare_spans.push_back({begin, end});
  }
  void take_spans() { spans.swap(spare_spans), spare_spans.clear(); }
  void take_both() { text.swap(spare_text), spare_text.clear(), take_spans(); }
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Pieces& pieces) const = 0;  // what is spare is empty before and after
};

// Memory of the models, so that no word costs an allocation.
struct Scratch {
  struct Step {  // Unigram: the best way to a byte
    double score;
    size_t from;
    int32_t id;
  };
  struct Symbol {  // BPE: a part of a word, in a list of them
    int32_t id, before, after;
  };
  struct Merge {
    uint32_t rank;
    int32_t at, left, right, made;
  };
  std::vector<Step> steps;
  std::vector<Symbol> symbols;
  std::vector<Merge> merges;
  std::string text;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual void append_ids(std::string_view word, Scratch& scratch,
                          std::vector<int32_t>& ids) const = 0;
  virtual int32_t id_of(std::string_view piece) const = 0;  // -1: none
  virtual size_t pieces() const = 0;
  virtual int32_t largest_id() const = 0;
  virtual const char* name() const = 0;
};

using NormalizerPtr = std::unique_ptr<const Normalizer>;
using PreTokenizerPtr = std::unique_ptr<const PreTokenizer>;
using ModelPtr = std::unique_ptr<const Model>;

// Parts of tokenizer.json. `place` is the file, for messages; a part that is null there is null.
NormalizerPtr read_normalizer(const nlohmann::json& part, const std::string& place);
PreTokenizerPtr read_pre_tokenizer(const nlohmann::json& part, const std::string& place);
ModelPtr read_model(const nlohmann::json& part, const std::string& place);

// Ids that stand before and behind every text.
struct Around {
  std::vector<int32_t> before, behind;
};
Around read_post_processor(const nlohmann::json& part, const std::string& place);

}  // namespace fungi::token
