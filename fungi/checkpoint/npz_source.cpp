// SPDX-License-Identifier: Apache-2.0
// .npz as a checkpoint (AugReg and other JAX models): every array under its own name, slashes and
// all.
#include "fungi/checkpoint/npy_header.h"
#include "fungi/checkpoint/source.h"
#include "fungi/checkpoint/zip.h"

namespace fungi {
namespace {

class NpzSource : public Checkpoint::Source {
 public:
  NpzSource(FilePointer file, std::unique_ptr<ZipArchive> archive) : archive_(std::move(archive)) {
    format = "npz";
    files.push_back(file);
    for (size_t i = 0; i < archive_->entries().size(); ++i) {
      const auto& entry = archive_->entries()[i];
      if (!entry.name.ends_with(".npy")) continue;
      const NpyHeader header = parse_npy_header(archive_->read_start(i, kLongestNpyHeader),
                                                entry.size, archive_->place(i));
      unlisted += !header.type();
      if (!header.type()) continue;
      tensors.push_back(
          {entry.name.substr(0, entry.name.size() - 4), *header.type(), header.shape});
      arrays_.push_back({i, header.layout(), header.data_offset});
    }
  }

  void read(size_t index, float* out) const override {
    const Array& array = arrays_[index];
    const size_t size = archive_->entries()[array.entry].size - array.data_offset;
    std::vector<std::byte> head(array.data_offset);
    if (array.layout.type == DType::f32 && is_contiguous(array.layout))
      return archive_->read(array.entry, head, {reinterpret_cast<std::byte*>(out), size});
    const std::unique_ptr<std::byte[]> bytes(new std::byte[size]);
    archive_->read(array.entry, head, {bytes.get(), size});
    gather(array.layout, bytes.get(), out);
  }

 private:
  struct Array {
    size_t entry;
    Strided layout;
    size_t data_offset;
  };

  std::unique_ptr<ZipArchive> archive_;
  std::vector<Array> arrays_;  // beside tensors
};

}  // namespace

SourcePointer open_npz(FilePointer file, std::unique_ptr<ZipArchive> archive) {
  return std::make_unique<NpzSource>(std::move(file), std::move(archive));
}

}  // namespace fungi
