// SPDX-License-Identifier: Apache-2.0
// Reading .npz, a zip of .npy arrays, through the guarded archive of zip.h.
#include <fmt/format.h>

#include <algorithm>

#include "fungi/checkpoint/npy.h"
#include "fungi/checkpoint/npy_header.h"
#include "fungi/checkpoint/npy_values.h"
#include "fungi/checkpoint/tensor_type.h"
#include "fungi/checkpoint/zip.h"

namespace fungi {

struct NpzFile::State {
  std::unique_ptr<ZipArchive> archive;
  std::vector<std::string> names;
  struct Array {
    size_t entry;
    NpyHeader header;
  };
  std::vector<Array> arrays;  // beside names

  const Array& find(std::string_view name) const {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end())
      fail(fmt::format("there is no array '{}' among {}", printable(name), names.size()),
           archive->path(), "numpy.load(path).files lists the names");
    return arrays[static_cast<size_t>(at - names.begin())];
  }

  std::vector<std::byte> load(const Array& array) const {
    const size_t offset = array.header.data_offset;
    std::vector<std::byte> head(offset), body(archive->entries()[array.entry].size - offset);
    archive->read(array.entry, head, body);
    return body;
  }
};

NpzFile::NpzFile() : state_(std::make_unique<State>()) {}
NpzFile::NpzFile(NpzFile&&) noexcept = default;
NpzFile& NpzFile::operator=(NpzFile&&) noexcept = default;
NpzFile::~NpzFile() = default;

NpzFile NpzFile::open(const std::filesystem::path& path) {
  NpzFile npz;
  State& state = *npz.state_;
  state.archive = std::make_unique<ZipArchive>(FileBytes::map(path));
  const auto& entries = state.archive->entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].name.ends_with(".npy")) continue;
    const std::string start = state.archive->read_start(i, kLongestNpyHeader);
    state.arrays.push_back({i, parse_npy_header(start, entries[i].size, state.archive->place(i))});
    state.names.push_back(entries[i].name.substr(0, entries[i].name.size() - 4));
  }
  if (state.names.empty())
    fail("holds no .npy entry", state.archive->path(), "write it with numpy.savez");
  return npz;
}

const std::vector<std::string>& NpzFile::names() const { return state_->names; }
bool NpzFile::contains(std::string_view name) const {
  return std::find(names().begin(), names().end(), name) != names().end();
}
const std::vector<size_t>& NpzFile::shape(std::string_view name) const {
  return state_->find(name).header.shape;
}

Matrix<float> NpzFile::read(std::string_view name) const {
  const auto& array = state_->find(name);
  return npy_floats(array.header, state_->load(array), state_->archive->place(array.entry));
}

std::vector<int64_t> NpzFile::read_integers(std::string_view name) const {
  const auto& array = state_->find(name);
  return npy_integers(array.header, state_->load(array), state_->archive->place(array.entry));
}

}  // namespace fungi
