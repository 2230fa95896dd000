// SPDX-License-Identifier: Apache-2.0
#include "fungi/token/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "fungi/base/error.h"
#include "fungi/token/byte_pieces.h"
#include "fungi/token/pair_table.h"
#include "fungi/token/trie.h"
#include "fungi/token/unicode.h"

namespace fungi::token {
namespace {

class Bpe final : public Model {
 public:
  Bpe(const Vocabulary& vocabulary, const Merges& merges, const BpeOptions& options,
      const std::string& place)
      : options_(options), pieces_(vocabulary.size()), merges_(merges.size()) {
    for (const auto& [piece, id] : vocabulary) {
      trie_.insert(piece, id);
      largest_ = std::max(largest_, id);
    }
    if (options_.byte_fallback) bytes_ = byte_pieces(trie_);
    continuing_ = trie_.walk(Trie::kRoot, options_.continuing);
    unknown_ = options_.unknown.empty() ? -1 : trie_.find(options_.unknown);
    for (size_t rank = 0; rank < merges.size(); ++rank) add_merge(merges[rank], rank, place);
    find_words(vocabulary);
  }

  void append_ids(std::string_view word, Scratch& scratch,
                  std::vector<int32_t>& ids) const override {
    const uint32_t node = trie_.walk(Trie::kRoot, word);
    if (node != Trie::kNowhere) {
      const int32_t id = options_.ignore_merges ? trie_.value(node) : whole_word(node);
      if (id >= 0) return ids.push_back(id);
    }
    merge(word, scratch, ids);
  }
  int32_t id_of(std::string_view piece) const override { return trie_.find(piece); }
  size_t pieces() const override { return pieces_; }
  int32_t largest_id() const override { return largest_; }
  const char* name() const override { return "BPE"; }

 private:
  void add_merge(const std::pair<std::string, std::string>& merge, size_t rank,
                 const std::string& place) {
    const auto& [left, right] = merge;
    const size_t skipped = std::min(options_.continuing.size(), right.size());
    const std::string made = left + right.substr(skipped);
    std::array<int32_t, 3> ids{};
    for (size_t i = 0; i < 3; ++i) {
      const std::string& piece = i == 0 ? left : i == 1 ? right : made;
      ids[i] = trie_.find(piece);
      if (ids[i] < 0)
        fail(fmt::format("expected every part of the merge '{} {}' in the vocabulary, found no "
                         "'{}'",
                         left, right, piece),
             place, "fetch the files of the model again");
    }
    merges_.insert(ids[0], ids[1], {uint32_t(rank), ids[2]});
  }

  // Most words of a text are pieces themselves; which of these the merges lead to is found once.
  void find_words(const Vocabulary& vocabulary) {
    is_word_.assign(size_t(largest_ + 1), false);
    Scratch scratch;
    std::vector<int32_t> ids;
    for (const auto& [piece, id] : vocabulary) {
      if (!std::string_view(piece).ends_with(options_.end_of_word)) continue;
      const auto word =
          std::string_view(piece).substr(0, piece.size() - options_.end_of_word.size());
      if (word.empty() || word.size() > kLongestShortcut) continue;
      ids.clear();
      merge(word, scratch, ids);
      is_word_[size_t(id)] = ids.size() == 1 && ids[0] == id;
    }
  }
  int32_t whole_word(uint32_t node) const {
    if (!options_.end_of_word.empty()) node = trie_.walk(node, options_.end_of_word);
    const int32_t id = node == Trie::kNowhere ? -1 : trie_.value(node);
    return id >= 0 && is_word_[size_t(id)] ? id : -1;
  }

  void merge(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
    auto& symbols = scratch.symbols;
    symbols.clear(), scratch.merges.clear();
    append_symbols(word, symbols);
    for (size_t i = 0; i < symbols.size(); ++i) {
      symbols[i].before = int32_t(i) - 1;
      symbols[i].after = i + 1 < symbols.size() ? int32_t(i) + 1 : -1;
    }
    for (size_t i = 0; i + 1 < symbols.size(); ++i) offer(int32_t(i), scratch);
    while (!scratch.merges.empty()) {
      std::pop_heap(scratch.merges.begin(), scratch.merges.end(), comes_later);
      const Scratch::Merge best = scratch.merges.back();
      scratch.merges.pop_back();
      auto& left = symbols[size_t(best.at)];
      if (left.id != best.left || left.after < 0) continue;
      auto& right = symbols[size_t(left.after)];
      if (right.id != best.right) continue;
      left.id = best.made;
      right.id = kGone;
      left.after = right.after;
      if (left.after >= 0) symbols[size_t(left.after)].before = best.at;
      if (left.before >= 0) offer(left.before, scratch);
      offer(best.at, scratch);
    }
    for (const auto& symbol : symbols)
      if (symbol.id != kGone) ids.push_back(symbol.id);
  }

  void append_symbols(std::string_view word, std::vector<Scratch::Symbol>& symbols) const {
    bool fused = false;  // the last symbol is unknown
    for (size_t at = 0; at < word.size();) {
      const std::string_view c = word.substr(at, bytes_of(word[at]));
      uint32_t node = at == 0 ? Trie::kRoot : continuing_;
      at += c.size();
      if (node != Trie::kNowhere) node = trie_.walk(node, c);
      if (node != Trie::kNowhere && at == word.size())
        node = trie_.walk(node, options_.end_of_word);
      if (node != Trie::kNowhere && trie_.value(node) >= 0) {
        symbols.push_back({trie_.value(node), 0, 0});
        fused = false;
      } else if (bytes_ && all_bytes_are_pieces(c)) {
        for (const char byte : c) symbols.push_back({(*bytes_)[uint8_t(byte)], 0, 0});
        fused = false;
      } else if (!options_.unknown.empty() && !(fused && options_.fuse_unknown)) {
        if (unknown_ < 0)
          fail(fmt::format("'{}' is unknown, and so is '{}', which should stand for it", c,
                           options_.unknown),
               "", "fetch the files of the model again");
        symbols.push_back({unknown_, 0, 0});
        fused = true;
      }
    }
  }

  bool all_bytes_are_pieces(std::string_view c) const {
    return std::all_of(c.begin(), c.end(), [&](char b) { return (*bytes_)[uint8_t(b)] >= 0; });
  }

  static bool comes_later(const Scratch::Merge& a, const Scratch::Merge& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  }
  void offer(int32_t at, Scratch& scratch) const {
    const auto& left = scratch.symbols[size_t(at)];
    if (left.after < 0) return;
    const int32_t right = scratch.symbols[size_t(left.after)].id;
    const PairTable::Made* made = merges_.find(left.id, right);
    if (!made) return;
    scratch.merges.push_back({made->rank, at, left.id, right, made->id});
    std::push_heap(scratch.merges.begin(), scratch.merges.end(), comes_later);
  }

  static constexpr int32_t kGone = -1;
  static constexpr size_t kLongestShortcut = 256;  // bytes
  BpeOptions options_;
  size_t pieces_;
  int32_t largest_ = -1, unknown_ = -1;
  Trie trie_;
  uint32_t continuing_ = Trie::kRoot;
  PairTable merges_;
  std::optional<BytePieces> bytes_;
  std::vector<bool> is_word_;  // by id: the whole word becomes this piece
};

Merges read_merges(PartFields& part) {
  const nlohmann::json& list = part.value("merges");
  Merges merges;
  if (!list.is_array()) part.refuse("merges", "a list of pairs");
  merges.reserve(list.size());
  for (const nlohmann::json& each : list) {
    if (each.is_array() && each.size() == 2 && each[0].is_string() && each[1].is_string()) {
      merges.emplace_back(each[0].get<std::string>(), each[1].get<std::string>());
      continue;
    }
    const std::string text = each.is_string() ? each.get<std::string>() : "";
    const size_t blank = text.find(' ');
    if (blank == std::string::npos || text.find(' ', blank + 1) != std::string::npos)
      part.refuse("merges", "a list of pairs");
    merges.emplace_back(text.substr(0, blank), text.substr(blank + 1));
  }
  return merges;
}

}  // namespace

ModelPtr make_bpe(const Vocabulary& vocabulary, const Merges& merges, const BpeOptions& options,
                  const std::string& place) {
  return std::make_unique<Bpe>(vocabulary, merges, options, place);
}

ModelPtr read_bpe(PartFields& part) {
  if (part.get("dropout", 0.0) != 0)
    part.refuse("dropout", "null: ids that are drawn at random are for training");
  BpeOptions options;
  options.unknown = part.get<std::string>("unk_token", "");
  options.continuing = part.get<std::string>("continuing_subword_prefix", "");
  options.end_of_word = part.get<std::string>("end_of_word_suffix", "");
  options.fuse_unknown = part.get("fuse_unk", false);
  options.byte_fallback = part.get("byte_fallback", false);
  options.ignore_merges = part.get("ignore_merges", false);
  const Vocabulary vocabulary = read_vocabulary(part.value("vocab"), part.place());
  return make_bpe(vocabulary, read_merges(part), options, part.place());
}

}  // namespace fungi::token
