// SPDX-License-Identifier: Apache-2.0
#include "fungi/token/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "fungi/base/error.h"
#include "fungi/token/byte_pieces.h"
#include "fungi/token/trie.h"
#include "fungi/token/unicode.h"

namespace fungi::token {
namespace {

constexpr double kUnknownPenalty = 10;  // below the worst piece
constexpr size_t kMostPieces = size_t(1) << 24;

class Unigram final : public Model {
 public:
  explicit Unigram(PartFields& part) {
    const nlohmann::json& pieces = part.value("vocab");
    if (!pieces.is_array() || pieces.empty() || pieces.size() > kMostPieces)
      part.refuse("vocab", "a list of pieces with their scores");
    double lowest = std::numeric_limits<double>::infinity();
    for (const nlohmann::json& each : pieces) {
      if (!each.is_array() || each.size() != 2 || !each[0].is_string() || !each[1].is_number())
        fail("expected pieces with their scores as the vocabulary, found " +
                 each.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace),
             part.place(), "fetch the file again");
      trie_.insert(each[0].get<std::string>(), int32_t(scores_.size()));
      scores_.push_back(each[1].get<double>());
      lowest = std::min(lowest, scores_.back());
    }
    unknown_score_ = lowest - kUnknownPenalty;
    const size_t none = scores_.size();
    const size_t unknown = part.get<unsigned long>("unk_id", none);
    if (unknown > none || (unknown == none && part.is_there("unk_id")))
      part.refuse("unk_id", "the number of a piece");
    unknown_ = unknown == none ? -1 : int32_t(unknown);
    if (part.get("byte_fallback", false)) bytes_ = byte_pieces(trie_);
  }

  void append_ids(std::string_view word, Scratch& scratch,
                  std::vector<int32_t>& ids) const override {
    auto& steps = scratch.steps;
    steps.assign(word.size() + 1, {0, kNone, -1});
    for (size_t at = 0; at < word.size();) {
      const size_t next = at + bytes_of(word[at]);
      bool has_char = false;
      uint32_t node = Trie::kRoot;
      for (size_t end = at; end < word.size();) {
        node = trie_.step(node, word[end++]);
        if (node == Trie::kNowhere) break;
        const int32_t id = trie_.value(node);
        if (id < 0) continue;
        improve(steps, at, end, scores_[size_t(id)], id);
        has_char |= end == next;
      }
      if (!has_char) improve(steps, at, next, unknown_score_, unknown_);
      at = next;
    }
    const size_t before = ids.size();
    for (size_t end = word.size(); end > 0;) {  // from the end: turned round below
      size_t from = steps[end].from;
      const int32_t id = steps[end].id;
      while (id == unknown_ && from > 0 && steps[from].id == unknown_) from = steps[from].from;
      append_piece(word.substr(from, end - from), id, ids);
      end = from;
    }
    std::reverse(ids.begin() + std::ptrdiff_t(before), ids.end());
  }
  int32_t id_of(std::string_view piece) const override { return trie_.find(piece); }
  size_t pieces() const override { return scores_.size(); }
  int32_t largest_id() const override { return int32_t(scores_.size()) - 1; }
  const char* name() const override { return "Unigram"; }

 private:
  static constexpr size_t kNone = ~size_t(0);

  static void improve(std::vector<Scratch::Step>& steps, size_t from, size_t to, double score,
                      int32_t id) {
    score += steps[from].score;
    if (steps[to].from == kNone || score > steps[to].score) steps[to] = {score, from, id};
  }

  // What is unknown goes as its bytes, last first, where all of these are pieces.
  void append_piece(std::string_view piece, int32_t id, std::vector<int32_t>& ids) const {
    if (id != unknown_) return ids.push_back(id);
    if (bytes_ && trie_.find(piece) != unknown_) {  // not the unknown itself, written out
      const auto is_piece = [&](char byte) { return (*bytes_)[uint8_t(byte)] >= 0; };
      if (std::all_of(piece.begin(), piece.end(), is_piece)) {
        for (size_t i = piece.size(); i-- > 0;) ids.push_back((*bytes_)[uint8_t(piece[i])]);
        return;
      }
    }
    if (unknown_ < 0)
      fail(fmt::format("'{}' is unknown to the vocabulary, which has nothing to stand for it",
                       piece),
           "", "leave the text out, or use another model");
    ids.push_back(unknown_);
  }

  Trie trie_;
  std::vector<double> scores_;
  double unknown_score_;
  int32_t unknown_ = -1;
  std::optional<BytePieces> bytes_;
};

}  // namespace

BytePieces byte_pieces(const Trie& vocabulary) {
  BytePieces pieces;
  for (unsigned byte = 0; byte < 256; ++byte)
    pieces[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte));
  return pieces;
}

ModelPtr read_unigram(PartFields& part) { return std::make_unique<Unigram>(part); }

}  // namespace fungi::token
