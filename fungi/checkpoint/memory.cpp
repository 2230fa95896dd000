// SPDX-License-Identifier: Apache-2.0
// Weights that a program holds, as those of a file: what stands before them in the sum of a file is
// here a line of text per tensor.
#include <fmt/format.h>

#include <algorithm>

#include "fungi/checkpoint/source.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

class MemorySource final : public Checkpoint::Source {
 public:
  MemorySource(const std::string& name, std::vector<MemoryTensor> given) : given_(std::move(given)) {
    format = "memory";
    std::sort(given_.begin(), given_.end(), [](const MemoryTensor& a, const MemoryTensor& b) {
      return a.info.name < b.info.name;
    });
    for (const MemoryTensor& t : given_) {
      const std::string place = tensor_place(name, t.info.name);
      if (t.info.shape.size() > kMostDimensions)
        fail(fmt::format("has {} dimensions, more than {}", t.info.shape.size(), kMostDimensions),
             place);
      const size_t expected = checked_count(t.info.shape, place) * size_of(t.info.type);
      if (t.bytes.size() != expected)
        fail(fmt::format("expected {} bytes for {} of shape {}, found {}", expected,
                         to_string(t.info.type), t.info.shape_text(), t.bytes.size()),
             place, "give compact arrays in row-major order");
      head_ += fmt::format("{} {} {}\n", t.info.name, to_string(t.info.type), t.info.shape_text());
      tensors.push_back(t.info);
    }
    files.push_back(FileBytes::borrow(name, std::as_bytes(std::span(head_))));
    for (const MemoryTensor& t : given_) files.push_back(FileBytes::borrow(name, t.bytes));
  }

  void read(size_t index, float* out) const override {
    const MemoryTensor& t = given_[index];
    to_floats(t.info.type, t.bytes.data(), t.info.count(), out);
  }

 private:
  std::vector<MemoryTensor> given_;
  std::string head_;
};

}  // namespace

SourcePointer memory_source(const std::string& name, std::vector<MemoryTensor> tensors) {
  return std::make_unique<MemorySource>(name, std::move(tensors));
}

}  // namespace fungi
