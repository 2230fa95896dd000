// SPDX-License-Identifier: Apache-2.0
// Samples of a kind that the library does not know: tables of numbers, whose rows stand where the
// words of a text model (BERT, RoBERTa, T5) would. Three classes say all: a data set that yields
// them, a view maker that writes them for the model, a modality. 06_own_modality MODEL
#include <cstdio>

#include "fungi/fungi.h"

using Table = std::shared_ptr<const fungi::Matrix<float>>;  // what std::any holds can be copied

// Rows around one of two points: the class. Each table has its own number of rows.
class Tables : public fungi::Dataset {
 public:
  Tables(size_t count, size_t width) {
    for (size_t i = 0; i < count; ++i) {
      const auto table = std::make_shared<fungi::Matrix<float>>(2 + i % 3, width);
      for (size_t r = 0; r < table->rows(); ++r)
        for (size_t c = 0; c < width; ++c)
          (*table)(r, c) =
              (c % 2 == i % 2 ? 1.0f : -1.0f) + 0.1f * float((i * 31 + r * 17 + c * 7) % 13);
      tables_.push_back(table);
      ids_.push_back(std::to_string(i)), labels_.push_back(int(i % 2));
    }
    finish(fungi::DatasetKind::flat, "tables");
  }
  std::vector<uint8_t> read(size_t) const override { return {}; }  // they are in memory
  fungi::Sample decode(size_t i, std::span<const uint8_t>,
                       const fungi::DecodeOptions&) const override {
    return std::any(tables_.at(i));
  }

 private:
  std::vector<Table> tables_;
};

class TableViews : public fungi::ViewMaker {
 public:
  void open(const fungi::Sample& sample, uint32_t) override {
    table_ = std::any_cast<Table>(std::get<std::any>(sample));
  }
  void write(size_t, fungi::InputBuffer& out) override {
    const auto rows = out.add_embedded(table_->rows(), table_->cols());
    std::copy_n(table_->data(), table_->rows() * table_->cols(), rows.data);
  }
  Table table_;
};

class TableModality : public fungi::Modality {
 public:
  fungi::SampleKind kind() const override { return fungi::SampleKind::own; }
  size_t views(const fungi::ViewPlan& plan) const override {
    if (plan != fungi::ViewPlan(fungi::WholeView{})) fungi::fail("a table has one view", "tables");
    return 1;
  }
  std::unique_ptr<fungi::ViewMaker> maker(const fungi::ViewPlan&) const override {
    return std::make_unique<TableViews>();
  }
  fungi::InputSettings settings(const fungi::DecodeOptions&) const override {
    return fungi::OwnSettings{{{"name", "table"}}};
  }
};

int main(int argc, char** argv) try {
  if (argc < 2) return std::fprintf(stderr, "usage: 06_own_modality MODEL\n"), 2;
  fungi::Pool pool;
  fungi::ExtractorOptions options;
  options.objectives = {"kl"};
  options.modality = std::make_shared<TableModality>();
  auto extractor = fungi::Extractor::open(argv[1], std::move(options), pool);
  const Tables tables(24, extractor.backbone().architecture().width);
  const auto rows = fungi::extract_to_memory(extractor, tables);
  const auto nearest = fungi::knn(rows.features, rows.features, 2, pool);
  size_t right = 0;
  for (size_t i = 0; i < rows.ids.size(); ++i)  // the first neighbour is the table itself
    right += rows.labels[i] == rows.labels[nearest.index(i, 1)];
  std::printf("%zu of %zu tables have a neighbour of their class\n", right, rows.ids.size());
} catch (const fungi::Error& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
