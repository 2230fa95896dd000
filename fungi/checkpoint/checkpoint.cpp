// SPDX-License-Identifier: Apache-2.0
// The common face of all weight files: choosing the reader by the first bytes, finding tensors by
// name, shaping them.
#include "fungi/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>

#include "fungi/checkpoint/sha256.h"
#include "fungi/checkpoint/source.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

// What people hand over by mistake; each gets its own remedy.
struct Lookalike {
  std::string_view start;
  const char* what;
  const char* hint;
};
constexpr Lookalike kLookalikes[] = {
    {"version https://git-lfs", "is a Git LFS pointer, not the file itself",
     "run 'git lfs pull' in its repository"},
    {"<", "is a web page or XML, not weights", "fetch the file itself, not the page around it"},
    {"\x93NUMPY", "is a single .npy array without a name", "put the arrays into an .npz file"},
    {"\x89HDF", "is an HDF5 file, which is not supported", "convert it to safetensors"},
    {"GGUF", "is a GGUF file, which is not supported", "take the original safetensors or .pth"},
    {"\x1F\x8B", "is compressed with gzip", "unpack it first"},
};

}  // namespace

SourcePointer open_source(FilePointer file) {
  const std::string_view text = file->text();
  // Eight bytes of length, then '{', perhaps behind blanks. The highest byte of a true length is 0,
  // that of JSON text is not.
  const size_t brace = text.find_first_not_of(kJsonBlanks, 8);
  if (brace != text.npos && text[brace] == '{' &&
      (text[7] == '\0' || (brace == 8 && text[0] != '{')))
    return open_safetensors(file);
  if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) return open_zip(file);
  if (text[0] == '\x80' || text.starts_with("L119547037146038801333356L"))
    return open_pytorch_legacy(file);
  if (text[0] == '{') return open_index(file);
  for (const Lookalike& known : kLookalikes)
    if (text.starts_with(known.start)) fail(known.what, file->path(), known.hint);
  if (text.size() > 262 && text.substr(257, 5) == "ustar")
    fail("is a tar archive, which is not supported", file->path(),
         "load and save it again with a newer torch, or unpack it");
  fail("is neither safetensors, nor a PyTorch file, nor .npz", file->path(),
       "give a .safetensors, .pth, .pt, .ckpt, .bin or .npz file, its index.json, or the folder "
       "around "
       "it");
}

struct Checkpoint::State {
  std::string path;
  std::optional<std::map<std::string, std::string>> beside;  // in memory; none: on disk
  SourcePointer source;
  std::vector<TensorInfo> tensors;  // sorted by name
  std::vector<size_t> order;        // tensors[i] is source->tensors[order[i]]
  std::once_flag hashed;
  std::string hash;
};

Checkpoint::Checkpoint() : state_(std::make_unique<State>()) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

Checkpoint Checkpoint::open(const fs::path& path) {
  Checkpoint checkpoint;
  State& state = *checkpoint.state_;
  std::error_code ignored;
  const fs::path file = fs::is_directory(path, ignored) ? find_in_folder(path) : path;
  state.path = file.string();
  state.source = open_source(FileBytes::map(file));
  checkpoint.list_tensors();
  return checkpoint;
}

Checkpoint Checkpoint::of_memory(std::string name, std::vector<MemoryTensor> tensors,
                                 std::map<std::string, std::string> beside) {
  Checkpoint checkpoint;
  State& state = *checkpoint.state_;
  state.path = std::move(name);
  state.beside = std::move(beside);
  state.source = memory_source(state.path, std::move(tensors));
  checkpoint.list_tensors();
  return checkpoint;
}

void Checkpoint::list_tensors() {
  State& state = *state_;
  const auto& found = state.source->tensors;
  if (found.empty())
    fail(state.source->unlisted == 0
             ? "holds no tensor"
             : fmt::format(
                   "holds no tensor that can be read: the {} in it are complex numbers, wide "
                   "unsigned integers or the like",
                   state.source->unlisted),
         state.path, "give a file with a model's weights (its state dict)");
  state.order.resize(found.size());
  for (size_t i = 0; i < found.size(); ++i) state.order[i] = i;
  std::sort(state.order.begin(), state.order.end(),
            [&](size_t a, size_t b) { return found[a].name < found[b].name; });
  for (size_t i : state.order) {
    if (!state.tensors.empty() && state.tensors.back().name == found[i].name)
      fail("occurs twice", tensor_place(state.path, found[i].name),
           "the file is ambiguous: save its state dict alone");
    state.tensors.push_back(found[i]);
  }
}

const std::string& Checkpoint::path() const { return state_->path; }
bool Checkpoint::in_memory() const { return state_->beside.has_value(); }
const std::string& Checkpoint::format() const { return state_->source->format; }
const std::vector<TensorInfo>& Checkpoint::tensors() const { return state_->tensors; }

const TensorInfo* Checkpoint::find(std::string_view name) const {
  const auto& all = state_->tensors;
  const auto at =
      std::lower_bound(all.begin(), all.end(), name,
                       [](const TensorInfo& t, std::string_view n) { return t.name < n; });
  return at == all.end() || at->name != name ? nullptr : &*at;
}

Matrix<float> Checkpoint::read(std::string_view name) const {
  const TensorInfo* info = find(name);
  if (info == nullptr)
    fail(fmt::format("there is no such tensor among {}", state_->tensors.size()),
         tensor_place(state_->path, name), "`inspect` with `tensors` lists the names");
  if (!is_float(info->type))
    fail(fmt::format("is of type {}; f32, f16, bf16 or f64 was expected", to_string(info->type)),
         tensor_place(state_->path, name), "store it as floats of one of these types");
  const auto& shape = info->shape;
  const size_t count = info->count();
  const size_t rows = shape.size() < 2 ? 1 : shape[0];
  size_t cols = 1;
  for (size_t i = shape.size() < 2 ? 0 : 1; i < shape.size(); ++i) cols *= shape[i];
  try {
    Matrix<float> matrix(rows, cols);
    if (count > 0)
      state_->source->read(state_->order[size_t(info - state_->tensors.data())], matrix.data());
    return matrix;
  } catch (const std::bad_alloc&) {
    fail(fmt::format("no memory for {} elements", count), tensor_place(state_->path, name),
         "use a machine with more memory");
  }
}

std::string Checkpoint::beside(const char* name) const {
  if (state_->beside) {
    const auto at = state_->beside->find(name);
    return at == state_->beside->end() ? "" : at->second;
  }
  constexpr size_t kLongest = size_t{16} << 20;
  const fs::path path = fs::path(state_->path).parent_path() / name;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  if (fs::file_size(path, ignored) == 0)
    fail("expected JSON, found an empty file", path.string(), "fetch it again, or move it away");
  const auto file = FileBytes::map(path);
  if (file->bytes().size() > kLongest)
    fail(
        fmt::format("is {} bytes long; such a file has at most {}", file->bytes().size(), kLongest),
        path.string(), "move it away or repair it");
  return std::string(file->text());
}

std::string Checkpoint::stamp() const {
  std::string all;
  for (const FilePointer& file : state_->source->files) all += file->stamp() + ";";
  return all;
}

std::string Checkpoint::sha256() const {
  std::call_once(state_->hashed, [this] {
    Sha256 hash;
    constexpr size_t kPiece = size_t{16} << 20;  // so much of the file in memory at a time
    for (const FilePointer& file : state_->source->files)
      for (size_t at = 0; at < file->bytes().size(); at += kPiece) {
        const auto piece = file->bytes().subspan(at, std::min(kPiece, file->bytes().size() - at));
        hash.add(piece);
        file->release(piece);
      }
    state_->hash = hash.hex();
  });
  return state_->hash;
}

}  // namespace fungi
