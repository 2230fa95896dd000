// SPDX-License-Identifier: Apache-2.0
#include "fungi/token/trie.h"

#include "fungi/base/error.h"

namespace fungi::token {

void Trie::insert(std::string_view key, int32_t value) {
  uint32_t node = kRoot;
  for (const char byte : key) {
    uint32_t next = step(node, byte);
    if (next == kNowhere) {
      next = uint32_t(values_.size());
      if (next >= kNodeMask)
        fail("the pieces of the vocabulary are too long to be kept", "tokenizer",
             "check that this is the file of a tokenizer");
      values_.push_back(-1);
      if (2 * values_.size() > slots_.size()) grow();
      put(key_of(node, byte) << kNodeBits | next);
    }
    node = next;
  }
  values_[node] = value;
}

uint32_t Trie::walk(uint32_t node, std::string_view bytes) const {
  for (const char byte : bytes)
    if ((node = step(node, byte)) == kNowhere) break;
  return node;
}

int32_t Trie::find(std::string_view key) const {
  const uint32_t node = walk(kRoot, key);
  return node == kNowhere ? -1 : values_[node];
}

Trie::Match Trie::longest(std::string_view text) const {
  Match best;
  uint32_t node = kRoot;
  for (size_t i = 0; i < text.size(); ++i) {
    node = step(node, text[i]);
    if (node == kNowhere) break;
    if (values_[node] >= 0) best = {i + 1, values_[node]};
  }
  return best;
}

void Trie::put(uint64_t edge) {
  size_t slot = slot_of(edge >> kNodeBits);
  while (slots_[slot] != kEmpty) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = edge;
}

void Trie::grow() {
  const std::vector<uint64_t> old = std::move(slots_);
  slots_.assign(2 * old.size(), kEmpty);
  --shift_;
  for (const uint64_t edge : old)
    if (edge != kEmpty) put(edge);
}

}  // namespace fungi::token
