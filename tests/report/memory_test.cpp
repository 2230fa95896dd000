// SPDX-License-Identifier: Apache-2.0
// A page where memory is short.
#include <gtest/gtest.h>

#include "fungi/base/random.h"
#include "fungi/report/report.h"
#include "tests/support/allocations.h"
#include "tests/support/folder.h"
#include "tests/support/made_store.h"

namespace fungi {
namespace {

TEST(Report, SectionsThatTheMemoryCannotHoldAreLeftOut) {
  const test::TemporaryFolder folder;
  for (const char* name : {"train", "test"}) {
    std::vector<test::MadeRow> rows(40);
    for (size_t i = 0; i < rows.size(); ++i) {
      const RandomStream random(5, name, i);
      rows[i] = {std::to_string(i), int64_t(i % 2), {{}, {}}};
      for (size_t c = 0; c < 6000; ++c) rows[i].blocks[c % 2].push_back(float(random.normal(c)));
    }
    test::write_made_store(folder / name, rows, {"a", "b"}, {"embedding", "kl"});
  }
  const Store train = Store::open(folder / "train"), test = Store::open(folder / "test");
  Pool pool(2);
  const auto page = [&] {
    return make_report(train, test, nullptr, nullptr, {.k = 3, .pca = 0}, pool);
  };
  const auto count = [](const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  const std::string whole = page();
  test::largest_allowed =
      40 * 6000 * sizeof(float) * 3 / 2;  // the rows, but not their products in f64
  std::string short_of_memory;
  try {
    short_of_memory = page();
  } catch (const std::bad_alloc&) {
  }
  test::largest_allowed = SIZE_MAX;
  EXPECT_EQ(count(whole, "not enough memory"), 0u);
  for (const char* title : {"Similarity of the blocks", "Map of the test rows"}) {
    const std::string left_out =
        std::string("<h2>") + title + "</h2><p class=note>left out: not enough memory";
    EXPECT_EQ(count(short_of_memory, left_out), 1u) << title;
    EXPECT_EQ(count(short_of_memory, title), 1u) << title;
  }
  EXPECT_EQ(count(short_of_memory, "Accuracy of every combination"), 1u);
  EXPECT_EQ(count(short_of_memory, "</html>"), 1u);
}

}  // namespace
}  // namespace fungi
