// SPDX-License-Identifier: Apache-2.0
// The arguments of a small extraction: a golden model, three objectives, shards of four samples.
#pragma once

#include <filesystem>
#include <string>

namespace fungi::test {

inline const std::string kModel =
    " -m " FUNGI_GOLDEN_DIR "/backbone/timm_vit/model.safetensors --set heads=4 ";
inline const std::string kObjectives =
    "--objectives kl dino:width=16,local_crops=2 simclr:width=8,negatives=3 ";

inline std::string extract(const std::filesystem::path& data, const std::filesystem::path& store,
                           const std::string& more = "",
                           const std::string& objectives = kObjectives) {
  return "extract " + data.string() + kModel + objectives + "--shard 4 -j 2 -o " + store.string() +
         " " + more;
}

}  // namespace fungi::test
