// SPDX-License-Identifier: Apache-2.0
// A kind of sample that the library does not know: tables of numbers, whose rows stand where the
// words of a text model would; each has its own number of rows.
#pragma once

#include <algorithm>

#include "fungi/base/random.h"
#include "fungi/feature/modality.h"
#include "fungi/input/dataset.h"

namespace fungi::test {

using Table = std::shared_ptr<const Matrix<float>>;

class Tables final : public Dataset {
 public:
  explicit Tables(size_t count, size_t width = 16) {
    for (size_t i = 0; i < count; ++i) {
      auto table = std::make_shared<Matrix<float>>(1 + i * 5 % 7, width);
      const RandomStream random(i, "tables");
      for (size_t k = 0; k < table->rows() * width; ++k) table->data()[k] = float(random.normal(k));
      tables_.push_back(std::move(table));
      ids_.push_back("table-" + std::to_string(i)), labels_.push_back(int(i % 2));
    }
    class_names_ = {"even", "odd"};
    finish(DatasetKind::flat, "tables");
  }
  std::vector<uint8_t> read(size_t) const override { return {}; }
  Sample decode(size_t i, std::span<const uint8_t>, const DecodeOptions&) const override {
    return std::any(tables_.at(i));
  }

 private:
  std::vector<Table> tables_;
};

class TableViews final : public ViewMaker {
 public:
  void open(const Sample& sample, uint32_t) override {
    const auto* own = std::get_if<std::any>(&sample);
    if (!own) fail("expected a table", "sample");
    table_ = std::any_cast<Table>(*own);
  }
  void write(size_t, InputBuffer& out) override {
    const View<float> rows = out.add_embedded(table_->rows(), table_->cols());
    std::copy_n(table_->data(), table_->rows() * table_->cols(), rows.data);
  }

 private:
  Table table_;
};

class TableModality final : public Modality {
 public:
  explicit TableModality(std::string unit = "metres") : unit_(std::move(unit)) {}
  SampleKind kind() const override { return SampleKind::own; }
  size_t views(const ViewPlan& plan) const override {
    if (plan != ViewPlan(WholeView{})) fail("a table has one view, itself", "tables");
    return 1;
  }
  std::unique_ptr<ViewMaker> maker(const ViewPlan&) const override {
    return std::make_unique<TableViews>();
  }
  InputSettings settings(const DecodeOptions&) const override {
    return OwnSettings{{{"name", "table"}, {"unit", unit_}}};
  }

 private:
  std::string unit_;
};

}  // namespace fungi::test
