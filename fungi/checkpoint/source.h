// SPDX-License-Identifier: Apache-2.0
// What stands behind a Checkpoint: one Source per file format, and the functions that open them.
// Internal to this room. Known types that never hold weights (wide unsigned integers, complex
// numbers, strings) are checked like the rest but not listed; float types that cannot be read
// (float8) are refused by name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fungi/checkpoint/checkpoint.h"
#include "fungi/checkpoint/file_bytes.h"

namespace fungi {

class ZipArchive;

using FilePointer = std::shared_ptr<const FileBytes>;

struct Checkpoint::Source {
  std::string format;
  std::vector<TensorInfo> tensors;  // in any order, names unique
  size_t unlisted = 0;              // tensors of known types that never hold weights
  std::vector<FilePointer> files;   // all that belongs to it, in the order in which they are hashed

  virtual ~Source() = default;
  // tensors[index], of a float type, as f32 in row-major order. Safe to call from several threads.
  virtual void read(size_t index, float* out) const = 0;
};

using SourcePointer = std::unique_ptr<Checkpoint::Source>;

inline constexpr char kJsonBlanks[] = " \t\r\n";

// Looks at the first bytes and calls the right one of the functions below.
SourcePointer open_source(FilePointer file);

SourcePointer open_safetensors(FilePointer file);
SourcePointer open_pytorch_legacy(FilePointer file);
SourcePointer open_zip(FilePointer file);                                       // .pth and .npz
SourcePointer open_npz(FilePointer file, std::unique_ptr<ZipArchive> archive);  // for open_zip
SourcePointer open_index(FilePointer file);  // *.index.json: opens the shards that lie beside it

// Tensors of a caller's; see Checkpoint::of_memory().
SourcePointer memory_source(const std::string& name, std::vector<MemoryTensor> tensors);

// The one checkpoint inside a folder.
std::filesystem::path find_in_folder(const std::filesystem::path& folder);

}  // namespace fungi
