// SPDX-License-Identifier: Apache-2.0
// PyTorch files since 1.6, and TorchScript archives: a zip with <name>/data.pkl and one entry
// <name>/data/<key> per storage. The code in a TorchScript archive is not looked at; its objects
// are read as dicts of attributes.
#include <fmt/format.h>

#include <mutex>

#include "fungi/checkpoint/pytorch.h"
#include "fungi/checkpoint/tensor_type.h"
#include "fungi/checkpoint/zip.h"

namespace fungi {
namespace {

class PytorchZipSource : public PytorchSource {
 public:
  PytorchZipSource(FilePointer file, std::unique_ptr<ZipArchive> archive, size_t pickle_entry)
      : archive_(std::move(archive)) {
    const std::string& path = file->path();
    std::string prefix = archive_->entries()[pickle_entry].name;
    prefix.resize(prefix.size() - std::string_view("data.pkl").size());
    format = archive_->find(prefix + "constants.pkl") ? "torchscript" : "pytorch zip";
    files.push_back(file);
    if (const auto order = archive_->find(prefix + "byteorder"))
      if (archive_->read_text(*order, 64) != "little")
        fail("was written on a big-endian machine", path, "save it again on a little-endian one");

    const std::string bytes = archive_->read_text(pickle_entry, kLongestPickle);
    const Pickle pickle = unpickle(bytes, path);
    for (const PickleStorage& storage : pickle.storages)
      storages_.push_back(locate(storage, prefix));
    take_tensors(pickle, path);
  }

 protected:
  std::shared_ptr<const std::byte> load(size_t storage, bool shared) const override {
    const size_t entry = storages_[storage];
    const std::lock_guard guard(lock_);
    if (shared && kept_ && kept_entry_ == entry) return kept_;
    const size_t size = archive_->entries()[entry].size;
    std::shared_ptr<std::byte[]> bytes(new std::byte[size]);
    archive_->read(entry, {}, {bytes.get(), size});
    std::shared_ptr<const std::byte> result(bytes, bytes.get());
    if (shared) kept_ = result, kept_entry_ = entry;
    return result;
  }

  bool load_into(size_t storage, std::span<std::byte> out) const override {
    archive_->read(storages_[storage], {}, out);
    return true;
  }

 private:
  size_t locate(const PickleStorage& storage, const std::string& prefix) const {
    const std::string name = fmt::format("{}data/{}", prefix, storage.key);
    const auto entry = archive_->find(name);
    if (!entry)
      fail(fmt::format("the storage '{}' is missing", printable(name)), archive_->path(),
           kFetchAgain);
    const size_t size = archive_->entries()[*entry].size;
    if (checked_multiply(storage.count, storage.element_size) != size)
      fail(fmt::format("holds {} bytes, but {} elements of {} bytes were expected", size,
                       storage.count, storage.element_size),
           archive_->place(*entry), kFetchAgain);
    return *entry;
  }

  std::unique_ptr<ZipArchive> archive_;
  std::vector<size_t> storages_;  // entry of each storage of the pickle
  // The storage that several tensors were last read from: without it a file that keeps all its
  // tensors in one storage would be unpacked once per tensor.
  mutable std::mutex lock_;
  mutable std::shared_ptr<const std::byte> kept_;
  mutable size_t kept_entry_ = 0;
};

// The entry <name>/data.pkl, directly below the archive's one folder.
std::optional<size_t> find_pickle(const ZipArchive& archive) {
  for (size_t i = 0; i < archive.entries().size(); ++i) {
    const std::string& name = archive.entries()[i].name;
    if (name == "data.pkl") return i;
    if (name.ends_with("/data.pkl") && name.find('/') == name.rfind('/')) return i;
  }
  return std::nullopt;
}

}  // namespace

SourcePointer open_zip(FilePointer file) {
  auto archive = std::make_unique<ZipArchive>(file);
  if (const auto pickle = find_pickle(*archive))
    return std::make_unique<PytorchZipSource>(file, std::move(archive), *pickle);
  bool arrays = false, old_script = false;
  for (const auto& entry : archive->entries()) {
    arrays |= entry.name.ends_with(".npy");
    old_script |= entry.name.ends_with("/model.json");
  }
  if (arrays) return open_npz(file, std::move(archive));
  if (old_script)
    fail("is a TorchScript archive of before torch 1.4, which is not supported", file->path(),
         "load it with a newer torch and save its state dict");
  fail("is a zip archive without data.pkl (PyTorch) and without .npy entries (numpy)", file->path(),
       "give the checkpoint itself; unpack the archive if it lies inside");
}

}  // namespace fungi
