// SPDX-License-Identifier: Apache-2.0
// The one list of the weights that a network is run with, under canonical names (those of timm's
// ViT, see HACKING.md), and where they come from. A file is checked against this list, read by it,
// packed by it, and random weights are made by it: a new tensor is a line here, and one where it is
// used.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fungi/backbone/architecture.h"
#include "fungi/base/matrix.h"

namespace fungi {

struct CanonicalTensor {
  std::string name;
  size_t rows = 0, cols = 0;
};

// All that such a network has: none of them may be missing, and there is no other.
std::vector<CanonicalTensor> canonical_tensors(const Architecture& architecture);

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // Compact, in that shape; Error where it cannot be had. Called by several threads.
  virtual Matrix<float> get(const CanonicalTensor& tensor) const = 0;
};

// Random weights with the scale of a trained network: N(0, 1/cols) matrices, norms near one.
class RandomTensors : public TensorSource {
 public:
  explicit RandomTensors(uint64_t seed) : seed_(seed) {}
  Matrix<float> get(const CanonicalTensor& tensor) const override;

 private:
  uint64_t seed_;
};

// The tensors of one architecture out of a source, by name alone.
class Tensors {
 public:
  Tensors(const Architecture& architecture, const TensorSource& source);  // both must outlive this
  // Empty where the architecture has no such tensor.
  Matrix<float> matrix(const std::string& name) const;
  std::vector<float> vector(const std::string& name) const;

 private:
  const TensorSource& source_;
  std::map<std::string, CanonicalTensor> listed_;
};

}  // namespace fungi
