// SPDX-License-Identifier: Apache-2.0
#include "fungi/store/member_writer.h"

#include "fungi/base/error.h"
#include "fungi/store/session.h"

namespace fungi {

MemberWriter::MemberWriter(const MemberPlace& place, StoreSpec spec,
                           std::vector<StoreSample> samples, std::vector<std::string> classes)
    : state_(std::make_unique<StoreWriter::State>()) {
  if (!std::filesystem::is_directory(place.folder))
    fail("the folder of the store is not there", place.folder.string(),
         "all ranks need one folder on a shared file system; or pass `gather`");
  StoreWriter::State& s = *state_;
  s.member = true;
  s.folder = s.target = place.folder;
  s.spec = std::move(spec);
  s.layout = {std::move(samples), std::move(classes), place.shard_size};
  s.layout.number_classes_after(place.first_classes);
  s.shard_rows.assign(s.layout.shards(), std::nullopt);
  s.failed.assign(s.layout.samples.size(), false);
  s.to_compute.assign(s.layout.shards(), 0);
}

MemberWriter::~MemberWriter() = default;

std::vector<StoreFailure> MemberWriter::put(const StoreWork& work,
                                            const std::vector<std::string>& keys,
                                            const StoreRows& rows) {
  FUNGI_ASSERT(keys.size() == work.samples.size() && rows.undone.empty());
  StoreWriter::State& s = *state_;
  for (size_t i = 0; i < keys.size(); ++i) s.layout.samples[work.samples[i]].key = keys[i];
  s.shard_rows[work.shard].reset();
  s.to_compute[work.shard] = work.samples.size();
  s.failures = {};  // of shards before
  return store::guarded([&] { return s.put(work, rows); });
}

}  // namespace fungi
