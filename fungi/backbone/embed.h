// SPDX-License-Identifier: Apache-2.0
// Inputs to the first token stream: patches of an image or filter bank, or words. Constant prefix
// tokens (class, distillation, registers) already carry their positions. Internal to this room.
#pragma once

#include <map>

#include "fungi/backbone/block.h"

namespace fungi {

struct Embedding {
  Linear patch;             // [width, channels·patch_h·patch_w], in bf16 twice side by side
  Linear conv1, conv2;      // in place of patches: [width, 3·bins] as above, [width, 3·width]
  Norm patch_norm;          // of the patches, before positions are added
  Matrix<float> prefix;     // [prefix_tokens, width], positions added
  Matrix<float> positions;  // [patches, width], already on the grid of the input size
  Matrix<float> stored_positions;  // as in the file, for other sizes
  std::vector<float> mask_token;
  Matrix<float> words;           // [vocabulary, words_width()]
  Matrix<float> word_positions;  // [max_positions, words_width()] with the type-0 row added; empty
                                 // for T5 and ModernBERT
  Linear word_map;               // [width, words_width()], of ALBERT
  Norm norm;                     // CLIP's norm_pre, BERT's embedding norm
};

Embedding load_embedding(const kernel::Kernel& kernel, const Tensors& tensors,
                         const Architecture& a);

// Error unless these are inputs that the architecture reads.
TokenLayout token_layout(const Architecture& a, const Inputs& inputs);

// Whisper's beginning, in convolutions.cpp: two convolutions over time that give one row per token.
void load_convolutions(const kernel::Kernel& kernel, const Tensors& tensors, Embedding& e);
// bank: [time, bins]; x: the first token's row, positions added.
void convolve(const Architecture& a, const kernel::Kernel& kernel, const Embedding& e,
              const float* bank, Scratch& scratch, float* x, size_t x_stride);

// In bf16 an input number is the sum of two elements, itself rounded and what that left over, and
// every weight stands twice. Rounded once, they would cost the embedding more than all other
// roundings of the network together (docs/numerics.md); the product is a hundredth of the work.
inline size_t input_parts(const kernel::Kernel& kernel) {
  return kernel.precision == Precision::bf16 ? 2 : 1;
}
// One row of numbers as elements, and behind them their rests.
void write_input(const kernel::Kernel& kernel, size_t count, const float* from, std::byte* out,
                 std::byte* rest);
Linear load_input_weights(const kernel::Kernel& kernel, View<const float> weight,
                          const std::vector<float>& bias);

// What changes with the side of a picture (Inputs::sides); a workspace makes that of each side when
// it meets the first one.
struct PictureGrid {
  Architecture arch;        // whose input has this side
  Matrix<float> positions;  // as in Embedding
  Matrix<float> rotary;     // as in Backbone::Weights
};
using PictureGrids = std::map<uint32_t, PictureGrid>;

// Lays out the rows of the batch and fills x [rows, width].
void embed(const Architecture& a, const kernel::Kernel& kernel, const Embedding& e,
           const Inputs& inputs, PictureGrids& grids, Scratch& scratch, Stages& stages,
           Batch& batch, Floats& x);

}  // namespace fungi
