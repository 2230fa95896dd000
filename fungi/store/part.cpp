// SPDX-License-Identifier: Apache-2.0
#include "fungi/store/part.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/checkpoint/tensor_type.h"
#include "fungi/store/shards.h"

namespace fungi {

StorePart parse_part(const std::string& text) {
  StorePart part;
  const char *begin = text.data(), *end = begin + text.size();
  const auto first = std::from_chars(begin, end, part.index);
  const bool slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = slash ? std::from_chars(first.ptr + 1, end, part.count) : first;
  if (!slash || second.ec != std::errc() || second.ptr != end || part.index < 1 ||
      part.index > part.count || part.count > store::kMaxShards)
    fail(fmt::format("expected a part such as 3/16, found '{}'", printable(text)), "`part`",
         fmt::format("of N parts, at most {}, the numbers are 1/N to N/N", store::kMaxShards));
  return part;
}

std::string to_string(const StorePart& part) {
  return fmt::format("{}/{}", part.index, part.count);
}

std::vector<size_t> share_shards(const std::vector<StoreSample>& samples, size_t shard_size,
                                 size_t count) {
  const size_t n = samples.size(), shards = n / shard_size + (n % shard_size != 0);
  std::vector<size_t> starts;  // shards that are the nearest to where an archive begins
  size_t archives = n > 0;
  for (size_t i = 1; i < n; ++i) {
    if (samples[i].container == samples[i - 1].container) continue;
    ++archives;
    starts.push_back(size_t(std::lround(double(i) / double(shard_size))));
  }
  std::vector<size_t> bounds(count + 1);
  for (size_t k = 0; k <= count; ++k) {
    bounds[k] = shards / count * k + shards % count * k / count;
    if (k == 0 || k == count || archives < count || archives < 2) continue;
    const auto after = std::lower_bound(starts.begin(), starts.end(), bounds[k]);
    const bool before_is_nearer =
        after == starts.end() ||
        (after != starts.begin() && bounds[k] - *(after - 1) <= *after - bounds[k]);
    bounds[k] = before_is_nearer ? *(after - 1) : *after;
  }
  return bounds;
}

std::string data_sum(const std::vector<StoreSample>& samples,
                     const std::vector<std::string>& classes, size_t shard_size) {
  uint64_t sum = fnv1a64(std::to_string(shard_size));
  for (const StoreSample& sample : samples) {
    const auto label = size_t(sample.label);
    const bool named = sample.label >= 0 && label < classes.size();
    const std::string_view name = named ? classes[label] : std::string_view();
    sum = fnv1a64(fmt::format("{}\n{}\n{}\n", sample.id, sample.label, name), sum);
  }
  return fmt::format("{:016x}", sum);
}

std::pair<size_t, size_t> samples_of_part(const std::vector<StoreSample>& samples,
                                          size_t shard_size, const StorePart& part) {
  const std::vector<size_t> bounds = share_shards(samples, shard_size, part.count);
  const auto at = [&](size_t shard) { return std::min(samples.size(), shard * shard_size); };
  return {at(bounds[part.index - 1]), at(bounds[part.index])};
}

}  // namespace fungi
