// SPDX-License-Identifier: Apache-2.0
// What both layouts of torch.save share: a pickle whose nested dicts are flattened into named
// tensors, and tensors that are strided windows on storages. The layouts (pytorch_zip.cpp,
// pytorch_legacy.cpp) supply the storages' bytes. Internal to this room.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fungi/checkpoint/pickle.h"
#include "fungi/checkpoint/source.h"

namespace fungi {

inline constexpr size_t kLongestPickle = size_t{64} << 20;  // in bytes

class PytorchSource : public Checkpoint::Source {
 public:
  void read(size_t index, float* out) const override;

 protected:
  // Fills tensors from the pickle; Error when a tensor reaches beyond its storage as the pickle
  // describes it.
  void take_tensors(const Pickle& pickle, const std::string& path);

  // All bytes of pickle.storages[storage]; `shared`: several tensors lie in it.
  virtual std::shared_ptr<const std::byte> load(size_t storage, bool shared) const = 0;
  // The same straight into memory of exactly that size; a layout with a better way than load()
  // overrides it.
  virtual bool load_into(size_t storage, std::span<std::byte> out) const;

 private:
  struct Named {
    Strided layout;
    size_t storage;
    bool negative;
    bool whole;  // contiguous f32, covering its storage, as they are
  };
  void flatten(const Pickle& pickle, const std::string& path);
  void add_tensor(const Pickle& pickle, uint32_t value, const std::string& name,
                  const std::string& path);

  std::vector<Named> named_;                         // beside tensors
  std::set<std::pair<std::string, uint32_t>> seen_;  // names and values
  std::vector<size_t> users_;                        // tensors per storage
};

}  // namespace fungi
