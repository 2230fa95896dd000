// SPDX-License-Identifier: Apache-2.0
// A bank grows at its end; building.json says how far it was safe when it was last saved.
#include <fmt/format.h>

#include "fungi/base/atomic_file.h"
#include "fungi/base/error.h"
#include "fungi/checkpoint/npy_growing.h"
#include "fungi/segment/bank_files.h"

namespace fungi {

using namespace segment;

struct BankWriter::State {
  State(std::filesystem::path at, const BankState& found)
      : folder(std::move(at)),
        now(found),
        features(folder / kFeatures, "<f4", now.spec.width * sizeof(float), now.spec.width,
                 now.rows),
        ends(folder / kLabelEnds, "<i8", sizeof(int64_t), 0, now.rows),
        classes(folder / kLabelClasses, "|u1", 1, 0, now.entries),
        shares(folder / kLabelShares, "<f4", sizeof(float), 0, now.entries) {}

  std::filesystem::path folder;
  BankState now;
  GrowingNpy features, ends, classes, shares;
};

namespace {

std::filesystem::path made(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    fail(fmt::format("cannot be made: {}", error.message()), folder.string(),
         "check the path and its permissions");
  return folder;
}

}  // namespace

BankWriter::BankWriter(const std::filesystem::path& folder, const BankSpec& spec) {
  if (spec.width == 0 || spec.classes == 0 || spec.classes > 256)
    fail(fmt::format("expected rows of at least one number and 1 to 256 classes, found {} and {}",
                     spec.width, spec.classes),
         folder.string(), "a mask has one byte per pixel: join classes");
  made(folder);
  BankState found{.spec = spec};
  if (Bank::is_there(folder, spec))
    fail("the bank is complete", folder.string(), "open it, or remove the folder");
  if (const auto file = folder / kBuildingFile; is_file(file)) {
    found = read_state(file);
    require_same(spec, found.spec, file);
  }
  state_ = std::make_unique<State>(folder, found);
}

BankWriter::~BankWriter() = default;

size_t BankWriter::steps() const { return state_->now.steps; }
size_t BankWriter::rows() const { return state_->now.rows; }
const std::vector<BankFailure>& BankWriter::failed() const { return state_->now.failed; }

void BankWriter::add(View<const float> rows, View<const float> labels) {
  State& s = *state_;
  if (rows.cols != s.now.spec.width || labels.cols != s.now.spec.classes ||
      rows.rows != labels.rows)
    fail(fmt::format("expected rows of {} numbers and labels of {}, found {}x{} and {}x{}",
                     s.now.spec.width, s.now.spec.classes, rows.rows, rows.cols, labels.rows,
                     labels.cols),
         s.folder.string(), "");
  std::vector<int64_t> ends;
  std::vector<uint8_t> classes;
  std::vector<float> shares;
  for (size_t i = 0; i < rows.rows; ++i) {
    for (size_t c = 0; c < labels.cols; ++c)
      if (labels(i, c) > 0) {
        classes.push_back(uint8_t(c));
        shares.push_back(labels(i, c));
      }
    ends.push_back(int64_t(s.now.entries + classes.size()));
  }
  if (rows.stride == rows.cols)
    s.features.append(std::span(rows.data, rows.rows * rows.cols));
  else
    for (size_t i = 0; i < rows.rows; ++i) s.features.append(std::span(rows.row(i), rows.cols));
  s.ends.append(std::span<const int64_t>(ends));
  s.classes.append(std::span<const uint8_t>(classes));
  s.shares.append(std::span<const float>(shares));
  s.now.rows += rows.rows;
  s.now.entries += classes.size();
  ++s.now.steps;
}

void BankWriter::add_failed(BankFailure failure) {
  state_->now.failed.push_back(std::move(failure));
  ++state_->now.steps;
}

void BankWriter::save() {
  State& s = *state_;
  for (GrowingNpy* file : {&s.features, &s.ends, &s.classes, &s.shares}) file->flush();
  write_file_atomically(s.folder / kBuildingFile, to_json(s.now));
}

void BankWriter::finish() {
  State& s = *state_;
  if (s.now.rows == 0)
    fail(s.now.failed.empty()
             ? "expected at least one row, found an empty bank"
             : fmt::format("none of the {} pictures could be used; the first: {}: {}",
                           s.now.failed.size(), s.now.failed[0].id, s.now.failed[0].reason),
         s.folder.string(), s.now.failed.empty() ? "" : s.now.failed[0].hint);
  for (GrowingNpy* file : {&s.features, &s.ends, &s.classes, &s.shares}) file->finish();
  write_file_atomically(s.folder / kBankFile, to_json(s.now));
  std::error_code ignored;
  std::filesystem::remove(s.folder / kBuildingFile, ignored);
}

}  // namespace fungi
