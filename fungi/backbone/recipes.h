// SPDX-License-Identifier: Apache-2.0
// How a checkpoint is read: what it is, and how each canonical tensor is made from those of the
// file. The recipes are written by the *_names.cpp files. Internal to this room.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fungi/backbone/tensors.h"
#include "fungi/checkpoint/checkpoint.h"

namespace fungi {

// How one canonical tensor is made from those of the file.
struct Recipe {
  std::vector<std::string>
      parts;  // stacked by rows; an empty name stands for rows of zeros (EVA's missing key bias)
  bool transposed = false;       // the file holds [cols, rows] (JAX kernels, CLIP's proj)
  bool jax_convolution = false;  // the file holds [h, w, in, out]
  bool slice = false;            // only some rows of the part are wanted, from first_row on
  size_t first_row = 0;
  bool rest = false;  // they reach to the end of the part
  std::string times = {};  // a tensor of as many factors, DINOv3's mask of biases
};
using Recipes = std::map<std::string, Recipe>;

// A checkpoint understood.
struct Reading {
  Architecture architecture;
  Recipes recipes;
  std::string prefix;  // before all names of the network in the file
  std::vector<std::string> notes;
};

// Recognises the checkpoint by its names; Error naming the choices when it cannot be told. What it
// gives can be loaded: every tensor is there, in its shape.
Reading read_names(const Checkpoint& checkpoint, const StatedFacts& stated_facts);
// Error naming the tensor of the file when one that the architecture has is missing or has another
// shape, or when one is read that it does not have; no data is read.
void check_recipes(const Checkpoint& checkpoint, const Reading& reading);

class CheckpointTensors : public TensorSource {
 public:
  CheckpointTensors(const Checkpoint& checkpoint, Recipes recipes)
      : checkpoint_(checkpoint), recipes_(std::move(recipes)) {}
  CheckpointTensors(Checkpoint&&, Recipes) = delete;  // must outlive this
  Matrix<float> get(const CanonicalTensor& tensor) const override;

 private:
  const Checkpoint& checkpoint_;
  Recipes recipes_;
};

}  // namespace fungi
