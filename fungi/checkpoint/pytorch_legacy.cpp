// SPDX-License-Identifier: Apache-2.0
// PyTorch files before 1.6: five pickles (magic number, version, system facts, the object, the keys
// of the storages), then the storages in the order of the keys, each an 8-byte element count and
// its elements.
#include <fmt/format.h>

#include <cstring>
#include <unordered_map>

#include "fungi/checkpoint/pytorch.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kMagicBytes =
    "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";                        // of protocol 2
constexpr std::string_view kMagicDigits = "119547037146038801333356";  // of protocols 0 and 1
constexpr int64_t kVersion = 1001;

class PytorchLegacySource : public PytorchSource {
 public:
  explicit PytorchLegacySource(FilePointer file) : file_(file) {
    format = "pytorch legacy";
    files.push_back(file);
    const std::string& path = file->path();
    check_head();
    next_pickle();  // facts about the writing machine: sizes of C types that torch no longer looks
                    // at
    const Pickle object = next_pickle();
    const Pickle keys = next_pickle();
    place_storages(object, keys);
    take_tensors(object, path);
  }

 protected:
  std::shared_ptr<const std::byte> load(size_t storage, bool) const override {
    return {file_, storages_[storage]};
  }

 private:
  Pickle next_pickle() {
    const std::string_view rest = file_->text().substr(position_);
    Pickle pickle = unpickle(rest.substr(0, kLongestPickle), file_->path());
    position_ += pickle.length;
    return pickle;
  }

  void check_head() {
    const Pickle magic = next_pickle();
    if (!magic.is_text(magic.root, kMagicBytes) && !magic.is_text(magic.root, kMagicDigits))
      fail("is a pickle, but not one that torch.save wrote", file_->path(),
           "save the weights with torch.save(model.state_dict(), path), or as safetensors");
    const Pickle version = next_pickle();
    const PickleValue& number = version[version.root];
    if (number.kind != Kind::integer || number.integer != kVersion)
      fail(fmt::format("has protocol version {}; {} was expected", number.integer, kVersion),
           file_->path(), "load it with torch and save it again");
  }

  void place_storages(const Pickle& object, const Pickle& keys) {
    const std::string& path = file_->path();
    std::unordered_map<std::string_view, std::vector<size_t>> waiting;
    for (size_t i = 0; i < object.storages.size(); ++i)
      waiting[object.storages[i].key].push_back(i);
    if (keys[keys.root].kind != Kind::sequence) fail("has no list of storages", path, kFetchAgain);
    storages_.resize(object.storages.size());
    for (uint32_t item : keys[keys.root].items) {
      const auto found = waiting.find(keys[item].text);
      if (keys[item].kind != Kind::text || found == waiting.end())
        fail(fmt::format("lists the storage '{}', which no tensor uses or which is listed twice",
                         printable(keys[item].text)),
             path, kFetchAgain);
      place_storage(object, found->second);
      waiting.erase(found);
    }
    if (!waiting.empty())
      fail(fmt::format("does not list the storage '{}'", printable(waiting.begin()->first)), path,
           kFetchAgain);
  }

  // All of `users` name one storage, which begins at position_.
  void place_storage(const Pickle& object, const std::vector<size_t>& users) {
    const auto bytes = file_->bytes().subspan(position_);
    const PickleStorage& storage = object.storages[users.front()];
    const std::string place =
        fmt::format("{}: storage '{}'", file_->path(), printable(storage.key));
    if (bytes.size() < 8) fail("is missing: the file ends before it", place, kFetchAgain);
    uint64_t count;
    std::memcpy(&count, bytes.data(), 8);
    const auto size = checked_multiply(storage.count, storage.element_size);
    if (count != storage.count || !size || *size > bytes.size() - 8)
      fail(fmt::format("has {} elements of {} bytes before the file's end; {} were expected", count,
                       storage.element_size, storage.count),
           place, kFetchAgain);
    for (size_t user : users) {
      const PickleStorage& other = object.storages[user];
      if (other.count != storage.count || other.element_size != storage.element_size)
        fail("is described in two ways", place, kFetchAgain);
      storages_[user] = bytes.data() + 8;
    }
    position_ += 8 + *size;
  }

  FilePointer file_;
  size_t position_ = 0;
  std::vector<const std::byte*> storages_;
};

}  // namespace

SourcePointer open_pytorch_legacy(FilePointer file) {
  return std::make_unique<PytorchLegacySource>(std::move(file));
}

}  // namespace fungi
