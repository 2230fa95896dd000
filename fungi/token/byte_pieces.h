// SPDX-License-Identifier: Apache-2.0
// Pieces "<0x00>" to "<0xFF>", for the bytes of characters that are no piece.
// Internal to this room.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "fungi/token/trie.h"

namespace fungi::token {

using BytePieces = std::array<int32_t, 256>;  // -1: that one is missing

BytePieces byte_pieces(const Trie& vocabulary);

}  // namespace fungi::token
