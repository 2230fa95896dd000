// SPDX-License-Identifier: Apache-2.0
// What the writer and the reader of a bank's folder share. Internal to this room.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fungi/segment/bank.h"

namespace fungi::segment {

inline constexpr const char *kBankFile = "bank.json", *kBuildingFile = "building.json";
inline constexpr const char *kFeatures = "features.npy", *kLabelEnds = "label_ends.npy",
                            *kLabelClasses = "label_classes.npy",
                            *kLabelShares = "label_shares.npy";

// How far a bank has come: bank.json and building.json.
struct BankState {
  BankSpec spec;
  size_t steps = 0, rows = 0, entries = 0;
  std::vector<BankFailure> failed;
};
std::string to_json(const BankState& state);
BankState read_state(const std::filesystem::path& file);  // Error where it is none
bool is_file(const std::filesystem::path& path);
// Error naming the first difference.
void require_same(const BankSpec& wanted, const BankSpec& found, const std::filesystem::path& file);

}  // namespace fungi::segment
