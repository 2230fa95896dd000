// SPDX-License-Identifier: Apache-2.0
// Inputs to the first token stream: patches of an image or filter bank, or words. Constant prefix
// tokens (class, distillation, registers) already carry their positions. Internal to this room.
#pragma once

#include "fungi/backbone/block.h"

namespace fungi {

struct Embedding {
  Linear patch;             // [width, channels·patch_h·patch_w], in bf16 twice side by side
  Matrix<float> prefix;     // [prefix_tokens, width], positions added
  Matrix<float> positions;  // [patches, width], already on the grid of the input size
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

// Lays out the rows of the batch and fills x [rows, width].
void embed(const Architecture& a, const kernel::Kernel& kernel, const Embedding& e,
           const Inputs& inputs, Scratch& scratch, Stages& stages, Batch& batch, Floats& x);

}  // namespace fungi
