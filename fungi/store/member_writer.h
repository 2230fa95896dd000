// SPDX-License-Identifier: Apache-2.0
// Shards of a store that another process has opened, plans and finishes (StoreWriter): writes their
// files, and nothing else. Internal to the library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fungi/store/writer.h"

namespace fungi {

class MemberWriter {
 public:
  // Error where the folder is not there.
  MemberWriter(const MemberPlace& place, StoreSpec spec, std::vector<StoreSample> samples,
               std::vector<std::string> classes);
  ~MemberWriter();

  // All samples of one shard, and the key of each. Failures go to a file of their own, which the
  // StoreWriter takes up; the rows file comes last. Returns the failures: those of `rows`, and
  // samples whose values cannot be stored.
  std::vector<StoreFailure> put(const StoreWork& work, const std::vector<std::string>& keys,
                                const StoreRows& rows);

 private:
  std::unique_ptr<StoreWriter::State> state_;
};

}  // namespace fungi
