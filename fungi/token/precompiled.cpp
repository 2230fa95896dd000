// SPDX-License-Identifier: Apache-2.0
// The table of replacements that a SentencePiece model carries: a double-array trie of what is
// replaced, and the texts that replace it.
#include <array>
#include <cstring>

#include "fungi/base/base64.h"
#include "fungi/base/error.h"
#include "fungi/token/normalizer.h"

namespace fungi::token {
namespace {

constexpr size_t kLongestCluster = 6;  // bytes; longer ones are looked at character by character

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(PartFields& part) {
    const auto bytes = from_base64(part.text("precompiled_charsmap"));
    uint32_t size = 0;  // of the trie; the texts follow
    if (!bytes || bytes->size() < 4) refuse(part);
    std::memcpy(&size, bytes->data(), 4);
    if (size % 4 != 0 || size > bytes->size() - 4) refuse(part);
    units_.resize(size / 4);
    std::memcpy(units_.data(), bytes->data() + 4, size);
    texts_ = bytes->substr(4 + size);
    for (size_t at = 0; at < texts_.size(); at = texts_.find('\0', at) + 1) {
      const size_t end = texts_.find('\0', at);
      if (end == std::string::npos || first_invalid_byte({texts_.data() + at, end - at}))
        refuse(part);
    }
    for (unsigned c = 0; c < 128; ++c) {
      const char one = char(c);
      if (const auto to = replacement({&one, 1})) ascii_[c] = *to;
      stays_[c] = ascii_[c].data() == nullptr;
    }
  }

  void apply(Draft& draft) const override {
    const std::string_view text = draft.text;
    for (size_t at = 0; at < text.size();) {
      const auto c = uint8_t(text[at]);
      const bool more = at + 1 < text.size();
      // Two ASCII characters are never one to a reader, but for the end of a line.
      if (c < 0x80 && (!more || (uint8_t(text[at + 1]) < 0x80 && c != '\r'))) {
        if (stays_[c])
          draft.spare += char(c);
        else
          draft.spare += ascii_[c], draft.require_lengths();
        ++at;
        continue;
      }
      const size_t end = grapheme_end(text, at);
      add_cluster(text.substr(at, end - at), draft.spare);
      draft.require_lengths();
      at = end;
    }
    draft.take_spare();
  }

 private:
  [[noreturn]] static void refuse(PartFields& part) {
    part.refuse("precompiled_charsmap", "a table of replacements as SentencePiece writes it");
  }

  void add_cluster(std::string_view cluster, std::string& out) const {
    if (cluster.size() < kLongestCluster)
      if (const auto to = replacement(cluster)) return void(out += *to);
    for (size_t at = 0; at < cluster.size();) {
      const std::string_view c = cluster.substr(at, bytes_of(cluster[at]));
      const auto to = replacement(c);
      out += to ? *to : c;
      at += c.size();
    }
  }

  // DEVIATION: that of the shortest key which `text` begins with, though it replaces all of it.
  // SentencePiece takes the longest and goes on behind it.
  std::optional<std::string_view> replacement(std::string_view text) const {
    if (units_.empty()) return {};
    size_t node = offset(units_[0]);
    for (const char c : text) {
      const auto byte = uint8_t(c);
      node ^= byte;
      if (byte == 0 || node >= units_.size()) return {};
      const uint32_t unit = units_[node];
      if ((unit & 0x800000FF) != byte) return {};
      node ^= offset(unit);
      if (!(unit >> 8 & 1)) continue;
      if (node >= units_.size()) return {};
      const size_t begin = units_[node] & 0x7FFFFFFF;
      if (begin >= texts_.size()) return {};
      return std::string_view(texts_).substr(begin, texts_.find('\0', begin) - begin);
    }
    return {};
  }
  static size_t offset(uint32_t unit) { return size_t(unit >> 10) << ((unit & 0x200) >> 6); }

  std::vector<uint32_t> units_;
  std::string texts_;
  std::array<std::string_view, 128> ascii_{};  // into texts_
  std::array<bool, 128> stays_{};
};

}  // namespace

NormalizerPtr make_precompiled(PartFields& part) { return std::make_unique<Precompiled>(part); }

}  // namespace fungi::token
