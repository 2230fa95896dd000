// SPDX-License-Identifier: Apache-2.0
// Where the encoder takes its weights from, under canonical names (those of timm's ViT, see
// HACKING.md): a checkpoint through recipes written by the *_names.cpp files, or random numbers for
// benchmarks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/backbone/architecture.h"
#include "fungi/base/matrix.h"
#include "fungi/checkpoint/checkpoint.h"

namespace fungi {

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual bool has(const std::string& name) const = 0;
  // The tensor as [rows, cols]; Error when it is missing or has another number of elements.
  virtual Matrix<float> get(const std::string& name, size_t rows, size_t cols) const = 0;
};

// How one canonical tensor is made from those of the file.
struct Recipe {
  std::vector<std::string>
      parts;  // stacked by rows; an empty name stands for rows of zeros (EVA's missing key bias)
  bool transposed = false;       // the file holds [cols, rows] (JAX kernels, CLIP's proj)
  bool jax_convolution = false;  // the file holds [h, w, in, out]
  bool slice = false;            // only some rows of the part are wanted, from first_row on
  size_t first_row = 0;
  bool rest = false;  // they reach to the end of the part
};
using Recipes = std::map<std::string, Recipe>;

// A checkpoint understood: what it is and how to read it.
struct Reading {
  Architecture architecture;
  Recipes recipes;
  std::string prefix;  // before all names of the network in the file
};

// Recognises the checkpoint by its names; Error naming the choices when it cannot be told. What it
// gives can be loaded: every tensor is there, in its shape.
Reading read_names(const Checkpoint& checkpoint, const StatedFacts& stated_facts);
// Error unless `key` is one of the facts that can be stated.
void require_stated_key(const std::string& key);

// The canonical tensors that an architecture is run with, as the encoder asks for them.
struct WantedTensor {
  std::string name;
  size_t rows = 0, cols = 0;
};
std::vector<WantedTensor> wanted_tensors(const Architecture& architecture);
// Error naming the tensor of the file when one of them is missing or has another shape; no data is
// read.
void check_shapes(const Checkpoint& checkpoint, const Reading& reading);

class CheckpointTensors : public TensorSource {
 public:
  CheckpointTensors(const Checkpoint& checkpoint, Recipes recipes)
      : checkpoint_(checkpoint), recipes_(std::move(recipes)) {}
  CheckpointTensors(Checkpoint&&, Recipes) = delete;  // must outlive this
  bool has(const std::string& name) const override { return recipes_.count(name) > 0; }
  Matrix<float> get(const std::string& name, size_t rows, size_t cols) const override;

 private:
  const Checkpoint& checkpoint_;
  Recipes recipes_;
};

// Random weights with the scale of a trained network: N(0, 1/cols) matrices, norms near one.
class RandomTensors : public TensorSource {
 public:
  explicit RandomTensors(uint64_t seed) : seed_(seed) {}
  bool has(const std::string&) const override { return true; }
  Matrix<float> get(const std::string& name, size_t rows, size_t cols) const override;

 private:
  uint64_t seed_;
};

}  // namespace fungi
