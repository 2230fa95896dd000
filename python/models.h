// SPDX-License-Identifier: Apache-2.0
// See models.cpp.
#pragma once

#include <variant>

#include "fungi/checkpoint/checkpoint.h"
#include "python/bind.h"

namespace fungi::python {

class MemoryModel {
 public:
  // tensors: (name, type, shape, bytes as a uint8 array) each; kept as long as this.
  MemoryModel(std::string name, nb::list tensors, nb::dict beside);
  Checkpoint checkpoint() const;

 private:
  std::string name_;
  nb::list kept_;
  std::vector<MemoryTensor> tensors_;
  std::map<std::string, std::string> beside_;
};

using Model = std::variant<std::filesystem::path, MemoryModel*>;

Model model_of(nb::handle given);  // a MemoryModel must outlive the result
Checkpoint checkpoint_of(const Model& model);
Backbone open_backbone(const Model& model, const BackboneOptions& options, Pool& pool);

}  // namespace fungi::python
