// SPDX-License-Identifier: Apache-2.0
// A file with weights, opened as its author published it: named tensors, read as f32. Nothing is
// executed, nothing is trusted: every offset and size is checked before use. Const after opening,
// safe to share between threads.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/base/matrix.h"

namespace fungi {

enum class DType { f32, f16, bf16, f64, i64, i32, i16, i8, u8, boolean };
const char* to_string(DType type);
size_t size_of(DType type);

struct TensorInfo {
  std::string
      name;  // as in the file; nested dicts are joined with dots ("state_dict.module.blocks.0...")
  DType type = DType::f32;
  std::vector<size_t> shape;
  size_t count() const;            // product of the shape
  std::string shape_text() const;  // "768x3x16x16"; "scalar" when empty
};

// A tensor that a program holds: its numbers in row-major order, at any alignment.
struct MemoryTensor {
  TensorInfo info;
  std::span<const std::byte> bytes;
};

class Checkpoint {
 public:
  // A .safetensors, .pth/.pt/.bin (zip or legacy) or .npz file, a model.safetensors.index.json /
  // pytorch_model.bin.index.json, or a folder that holds exactly one of them. The format is taken
  // from the bytes, not from the name.
  static Checkpoint open(const std::filesystem::path& path);

  // Weights that no file holds. The bytes must outlive the checkpoint, and nothing is copied. name:
  // for messages. beside: small files by name, as they would lie beside a file ("config.json").
  // Errors: no tensors, two of one name, bytes that are not those of the shape.
  static Checkpoint of_memory(std::string name, std::vector<MemoryTensor> tensors,
                              std::map<std::string, std::string> beside = {});

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const std::string& path() const;  // what was opened, for messages
  bool in_memory() const;           // of_memory() made it
  // "safetensors", "pytorch zip", "pytorch legacy", "torchscript", "npz", "... (sharded)",
  // "memory"
  const std::string& format() const;
  const std::vector<TensorInfo>& tensors() const;       // sorted by name
  const TensorInfo* find(std::string_view name) const;  // null when there is none

  // The tensor as f32, row-major: [shape[0], product of the rest] (a vector or scalar is one row).
  // Float types only; anything else is an Error naming the tensor.
  Matrix<float> read(std::string_view name) const;

  // The text of a small file of that name that lies beside the weights, as config.json does; empty
  // when there is none. Error when there is an empty one.
  std::string beside(const char* name) const;

  // SHA-256 of all bytes of the file, in hex; of shards, one after the other in the order of their
  // names; in memory, of all names, types, shapes and bytes. Computed on first call.
  std::string sha256() const;
  // Sizes and times of those files when they were opened: a file that was changed or replaced since
  // gives another one.
  std::string stamp() const;

  struct Source;  // one per format

 private:
  Checkpoint();
  void list_tensors();  // of the source, sorted and checked
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fungi
