// SPDX-License-Identifier: Apache-2.0
// Flattening of nested dicts, and reading of strided tensors out of storages.
#include "fungi/checkpoint/pytorch.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

using Kind = PickleValue::Kind;

// Containers that refer to themselves or to each other many times must not turn a small file into
// endless names.
constexpr size_t kDeepest = 64;
constexpr size_t kMostContainers = size_t{1} << 20;
constexpr size_t kLongestName = 4096;
constexpr size_t kMostNameBytes = size_t{64} << 20;
constexpr const char* kSaveAlone =
    "save the state dict alone: torch.save(model.state_dict(), path)";

}  // namespace

void PytorchSource::add_tensor(const Pickle& pickle, uint32_t value, const std::string& name,
                               const std::string& path) {
  if (!seen_.insert({name, value}).second) return;  // an item that is an attribute, too
  const PickleTensor& tensor = pickle.tensors[static_cast<size_t>(pickle[value].integer)];
  if (!tensor.listed) {
    ++unlisted;
    return;
  }
  const PickleStorage& storage = pickle.storages[tensor.storage];
  const std::string place = tensor_place(path, name);
  const auto bytes = checked_multiply(storage.count, storage.element_size);
  if (!bytes) fail(fmt::format("its storage has {} elements", storage.count), place, kSaveAlone);
  const size_t stored = *bytes / size_of(tensor.layout.type);
  check_bounds(tensor.layout, stored, place);
  tensors.push_back({name, tensor.layout.type, tensor.layout.shape});
  const bool whole =
      !tensor.negative && tensor.layout.type == DType::f32 && tensor.layout.offset == 0 &&
      tensors.back().count() * sizeof(float) == *bytes && is_contiguous(tensor.layout);
  named_.push_back({tensor.layout, tensor.storage, tensor.negative, whole});
  ++users_[tensor.storage];
}

void PytorchSource::flatten(const Pickle& pickle, const std::string& path) {
  struct Open {
    uint32_t value;
    size_t next;         // item to look at
    size_t name_length;  // of the prefix that names this container
  };
  std::vector<Open> open{{pickle.root, 0, 0}};
  std::string name;
  size_t containers = 0, name_bytes = 0;
  std::unordered_set<uint32_t> objects{pickle.root};
  while (!open.empty()) {
    Open& here = open.back();
    const PickleValue& container = pickle[here.value];
    const bool sequence = container.kind == Kind::sequence;
    if (here.next >= container.items.size()) {
      open.pop_back();
      continue;
    }
    name.resize(here.name_length);
    if (!name.empty()) name += '.';
    uint32_t value = container.items[here.next];
    if (sequence) {
      name += std::to_string(here.next++);
    } else {
      const PickleValue& key = pickle[value];
      value = container.items[here.next + 1];
      here.next += 2;
      if (key.kind == Kind::text)
        name += key.text.substr(0, kLongestName + 1);
      else if (key.kind == Kind::integer)
        name += std::to_string(key.integer);
      else if (key.global)
        name += key.global->name;
      else
        name += fmt::format("?{}", here.next / 2);  // None, a tuple, ...
    }
    const Kind kind = pickle[value].kind;
    // Such objects refer to each other in circles.
    if (kind == Kind::object && pickle[value].global && !objects.insert(value).second) continue;
    if (kind == Kind::tensor) {
      name_bytes += name.size();
      add_tensor(pickle, value, name, path);
    }
    if (kind == Kind::dict || kind == Kind::object || kind == Kind::sequence) {
      open.push_back({value, 0, name.size()});
      ++containers;
    }
    if (open.size() > kDeepest || containers > kMostContainers || name.size() > kLongestName ||
        name_bytes > kMostNameBytes)
      fail(fmt::format("its dicts and lists are nested, repeated or named beyond measure, at '{}'",
                       printable(name)),
           path, kSaveAlone);
  }
}

void PytorchSource::take_tensors(const Pickle& pickle, const std::string& path) {
  users_.assign(pickle.storages.size(), 0);
  const Kind kind = pickle[pickle.root].kind;
  if (kind != Kind::dict && kind != Kind::object && kind != Kind::sequence)
    fail("holds no dict of named tensors", path, kSaveAlone);
  flatten(pickle, path);
}

bool PytorchSource::load_into(size_t, std::span<std::byte>) const { return false; }

void PytorchSource::read(size_t index, float* out) const {
  const Named& tensor = named_[index];
  const size_t bytes = tensors[index].count() * sizeof(float);
  if (tensor.whole && load_into(tensor.storage, {reinterpret_cast<std::byte*>(out), bytes})) return;
  gather(tensor.layout, load(tensor.storage, users_[tensor.storage] > 1).get(), out);
  if (tensor.negative)
    std::transform(out, out + tensors[index].count(), out, [](float value) { return -value; });
}

}  // namespace fungi
