// SPDX-License-Identifier: Apache-2.0
// .npz: a zip of .npy arrays. Reading goes through the guarded archive of zip.h; writing stores
// without packing, with a fixed date, so that equal arrays give equal bytes.
#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <new>

#include "fungi/checkpoint/atomic_file.h"
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

namespace {

[[noreturn]] void cannot_write(const std::filesystem::path& path, zip_error_t* error) {
  fail(fmt::format("the archive cannot be built: {}", zip_error_strerror(error)), path.string(),
       "check the names of the arrays and the free memory");
}

// Owns what libzip needs while an archive grows in memory.
struct MemoryArchive {
  zip_error_t error;
  zip_source_t* memory = nullptr;
  zip_t* zip = nullptr;

  MemoryArchive() {
    zip_error_init(&error);
    memory = zip_source_buffer_create(nullptr, 0, 0, &error);
    if (memory == nullptr) throw std::bad_alloc();
    zip_source_keep(memory);  // the archive frees one reference, the destructor the other
    zip = zip_open_from_source(memory, ZIP_CREATE | ZIP_TRUNCATE, &error);
    if (zip == nullptr) throw std::bad_alloc();
  }
  MemoryArchive(const MemoryArchive&) = delete;
  ~MemoryArchive() {
    if (zip != nullptr) zip_discard(zip);
    zip_source_free(memory);
    zip_error_fini(&error);
  }
};

}  // namespace

void write_npz(const std::filesystem::path& path,
               const std::vector<std::pair<std::string, NpyArray>>& arrays) {
  MemoryArchive archive;
  std::vector<std::string> heads;  // borrowed by libzip until it closes
  heads.reserve(arrays.size());
  for (const auto& [name, array] : arrays) {
    heads.push_back(npy_header(array.descr, array.shape));
    const zip_buffer_fragment_t parts[] = {
        {reinterpret_cast<zip_uint8_t*>(heads.back().data()), heads.back().size()},
        {reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(array.bytes.data())),
         array.bytes.size()}};
    zip_source_t* source =
        zip_source_buffer_fragment(archive.zip, parts, array.bytes.empty() ? 1 : 2, 0);
    const auto index = source == nullptr ? -1
                                         : zip_file_add(archive.zip, (name + ".npy").c_str(),
                                                        source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      cannot_write(path, zip_get_error(archive.zip));
    }
    const auto entry = static_cast<zip_uint64_t>(index);
    constexpr zip_uint16_t kFirstOf1980 = (1 << 5) | 1;  // the earliest date a zip can say
    if (zip_set_file_compression(archive.zip, entry, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(archive.zip, entry, 0, kFirstOf1980, 0) != 0)
      cannot_write(path, zip_get_error(archive.zip));
  }
  if (zip_close(archive.zip) != 0) cannot_write(path, zip_get_error(archive.zip));
  archive.zip = nullptr;
  zip_stat_t stat;
  if (zip_source_stat(archive.memory, &stat) != 0 || zip_source_open(archive.memory) != 0)
    cannot_write(path, zip_source_error(archive.memory));
  std::vector<std::byte> bytes(stat.size);
  const auto got = zip_source_read(archive.memory, bytes.data(), bytes.size());
  zip_source_close(archive.memory);
  if (got < 0 || static_cast<size_t>(got) != bytes.size())
    cannot_write(path, zip_source_error(archive.memory));
  write_file_atomically(path, {bytes});
}

}  // namespace fungi
