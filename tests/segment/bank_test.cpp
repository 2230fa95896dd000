// SPDX-License-Identifier: Apache-2.0
// The bank: what is written is read, a run that was stopped goes on to the same bytes, damage is
// noticed, and searches find what they should.
#include "fungi/segment/bank.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fungi/base/atomic_file.h"
#include "fungi/base/random.h"
#include "fungi/search/knn.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

using test::TemporaryFolder;

constexpr size_t kWidth = 20, kClasses = 5;
const BankSpec kSpec{.width = kWidth, .classes = kClasses, .settings = R"({"seed": 1})"};

// Unit rows around a few directions; row r of step s.
Matrix<float> rows_of(size_t step, size_t count, size_t width = kWidth) {
  Matrix<float> rows(count, width);
  for (size_t i = 0; i < count; ++i) {
    const RandomStream centre(1, "centre", (step * 31 + i) % 11), own(2, "row", step * 1000 + i);
    double sum = 0;
    for (size_t c = 0; c < width; ++c) {
      rows(i, c) = float(centre.normal(c) + 0.7 * own.normal(c));
      sum += double(rows(i, c)) * rows(i, c);
    }
    for (size_t c = 0; c < width; ++c) rows(i, c) = float(rows(i, c) / std::sqrt(sum));
  }
  return rows;
}

Matrix<float> labels_of(size_t step, size_t count) {
  Matrix<float> labels(count, kClasses);
  for (size_t i = 0; i < count; ++i) {
    labels(i, (step + i) % kClasses) += 0.75f;
    labels(i, (step + i * i) % kClasses) += 0.25f;
  }
  return labels;
}

size_t count_of(size_t step) { return 5 + step % 3; }

// Steps until `steps` are done; every fourth fails, every third is saved.
void write(BankWriter& writer, size_t steps) {
  for (size_t step = writer.steps(); step < steps; ++step) {
    if (step % 4 == 3)
      writer.add_failed({"picture " + std::to_string(step), "is broken", "mend it"});
    else
      writer.add(rows_of(step, count_of(step)), labels_of(step, count_of(step)));
    if (step % 3 == 2) writer.save();
  }
}

TEST(Bank, WhatIsWrittenIsRead) {
  const TemporaryFolder root;
  {
    BankWriter writer(root / "bank", kSpec);
    EXPECT_FALSE(Bank::is_there(root / "bank", kSpec));
    write(writer, 9);
    writer.finish();
    EXPECT_TRUE(Bank::is_there(root / "bank", kSpec));
    EXPECT_ERROR("the bank is complete", BankWriter(root / "bank", kSpec));
  }
  const Bank bank = Bank::open(root / "bank");
  EXPECT_EQ(bank.spec().classes, kClasses);
  ASSERT_EQ(bank.failed().size(), 2u);
  EXPECT_EQ(bank.failed()[1].id, "picture 7");
  EXPECT_EQ(bank.failed()[1].reason, "is broken");
  size_t row = 0;
  for (size_t step = 0; step < 9; ++step) {
    if (step % 4 == 3) continue;
    const Matrix<float> rows = rows_of(step, count_of(step)),
                        labels = labels_of(step, count_of(step));
    for (size_t i = 0; i < rows.rows(); ++i, ++row) {
      for (size_t c = 0; c < kWidth; ++c) EXPECT_EQ(bank.features()(row, c), rows(i, c));
      std::vector<double> shares(kClasses, 0);
      bank.add_label(row, 2, shares);
      for (size_t c = 0; c < kClasses; ++c) EXPECT_EQ(shares[c], 2 * double(labels(i, c)));
    }
  }
  EXPECT_EQ(row, bank.rows());
}

TEST(Bank, AStoppedRunGoesOnToTheSameBytes) {
  const TemporaryFolder root;
  {
    BankWriter whole(root / "whole", kSpec);
    write(whole, 11);
    whole.finish();
  }
  for (size_t stop = 0; stop < 11; ++stop) {
    const auto folder = root / std::to_string(stop);
    {
      BankWriter writer(folder, kSpec);
      write(writer, stop);  // then it is killed: what was not saved is lost
    }
    EXPECT_ERROR(stop > 2 ? "the bank is not complete" : "there is no bank", Bank::open(folder));
    BankWriter writer(folder, kSpec);
    EXPECT_EQ(writer.steps(), stop / 3 * 3);
    write(writer, 11);
    writer.finish();
    EXPECT_TRUE(test::contents(folder) == test::contents(root / "whole")) << "stopped at " << stop;
  }
}

TEST(Bank, OtherSettingsAreRefused) {
  const TemporaryFolder root;
  {
    BankWriter writer(root / "bank", kSpec);
    write(writer, 3);
    EXPECT_ERROR("another program is writing", BankWriter(root / "bank", kSpec));
  }
  BankSpec other = kSpec;
  other.settings = R"({"seed": 2})";
  EXPECT_ERROR("settings.seed", BankWriter(root / "bank", other));
  other = kSpec;
  other.width = 21;
  EXPECT_ERROR("width", BankWriter(root / "bank", other));
  other.classes = 257;
  EXPECT_ERROR("1 to 256 classes, found 21 and 257", BankWriter(root / "bank", other));
}

TEST(Bank, AnEmptyOneIsNone) {
  const TemporaryFolder root;
  BankWriter writer(root / "bank", kSpec);
  EXPECT_ERROR("found an empty bank", writer.finish());
  writer.add_failed({"a.jpg", "is broken", "mend it"});
  EXPECT_ERROR("none of the 1 pictures could be used; the first: a.jpg: is broken",
               writer.finish());
  EXPECT_ERROR("expected rows of 20 numbers", writer.add(Matrix<float>(2, 3), Matrix<float>(2, 5)));
}

TEST(Bank, DamageIsNoticed) {
  const TemporaryFolder root;
  {
    BankWriter writer(root / "bank", kSpec);
    write(writer, 5);
    writer.finish();
  }
  const auto whole = test::contents(root / "bank");
  ASSERT_EQ(whole.size(), 5u);
  const auto damaged = [&](const std::string& name, std::string bytes) {
    test::write_file(root / "bank" / name, bytes);
    const std::string said = test::error_of([&] { Bank::open(root / "bank"); });
    test::write_file(root / "bank" / name, whole.at(name));
    return said;
  };
  for (const auto& [name, bytes] : whole) {
    EXPECT_NE(damaged(name, bytes.substr(0, bytes.size() / 2)), "") << name;
    EXPECT_NE(damaged(name, ""), "") << name;
    EXPECT_NE(damaged(name, "x" + bytes.substr(1)), "") << name;
  }
  std::string classes = whole.at("label_classes.npy");
  classes.back() = char(kClasses);
  EXPECT_NE(damaged("label_classes.npy", classes).find("classes of which"), std::string::npos);
  std::string ends = whole.at("label_ends.npy");
  ends[128] = char(100);
  EXPECT_NE(damaged("label_ends.npy", ends).find("ascending ends"), std::string::npos);
  EXPECT_EQ(Bank::open(root / "bank").rows(), 24u);
}

TEST(Bank, AnIndexFindsWhatIsNear) {
  const TemporaryFolder root;
  {
    BankWriter writer(root / "bank", kSpec);
    for (size_t step = 0; step < 40; ++step) writer.add(rows_of(step, 50), labels_of(step, 50));
    writer.finish();
  }
  Pool pool(2), alone(1);
  Bank bank = Bank::open(root / "bank");
  const Matrix<float> queries = rows_of(100, 64);
  bank.prepare({.search = BankSearch::exact}, pool);
  EXPECT_TRUE(bank.is_exact());
  const Neighbours exact = bank.search(queries, 10, pool);
  EXPECT_EQ(bank.recall(queries, 10, pool), 1);
  const Neighbours plain =
      knn(bank.features(), queries, 10, pool, {.metric = Metric::inner_product});
  for (size_t q = 0; q < 64; ++q)
    for (size_t b = 0; b < 10; ++b) EXPECT_EQ(exact.index(q, b), plain.index(q, b));
  // All lists and enough rows compared: nothing is missed. Fewer: little is.
  bank.prepare({.search = BankSearch::ivf, .lists = 16, .probes = 16, .rerank = 200}, pool);
  EXPECT_FALSE(bank.is_exact());
  EXPECT_EQ(bank.recall(queries, 10, pool), 1);
  const Neighbours all = bank.search(queries, 10, pool);
  for (size_t q = 0; q < 64; ++q)
    for (size_t b = 0; b < 10; ++b) {
      EXPECT_EQ(all.index(q, b), exact.index(q, b));
      EXPECT_EQ(all.value(q, b), exact.value(q, b));
    }
  const BankSearchOptions few{.search = BankSearch::ivf, .lists = 16, .probes = 4, .rerank = 30};
  bank.prepare(few, pool);
  EXPECT_GT(bank.recall(queries, 10, pool), 0.9);
  // Alone, together, on any threads: the same.
  const Neighbours together = bank.search(queries, 10, pool),
                   same = bank.search(queries, 10, alone);
  for (size_t q = 0; q < 64; ++q) {
    const Neighbours one = bank.search(queries.view().slice(q, 1), 10, alone);
    for (size_t b = 0; b < 10; ++b) {
      EXPECT_EQ(one.index(0, b), together.index(q, b));
      EXPECT_EQ(one.value(0, b), together.value(q, b));
      EXPECT_EQ(same.index(q, b), together.index(q, b));
    }
  }
  // One list that has too few rows: the others help out.
  bank.prepare({.search = BankSearch::ivf, .lists = 16, .probes = 1, .rerank = 30}, pool);
  EXPECT_EQ(bank.search(queries, 2000, pool).index.cols(), 2000u);
  EXPECT_ERROR("asked for 2001 neighbours", bank.search(queries, 2001, pool));
}

TEST(Bank, TheIndexIsTheSameForAnyThreadsAndBuiltOnce) {
  const TemporaryFolder root;
  for (const char* name : {"a", "b"}) {
    BankWriter writer(root / name, kSpec);
    for (size_t step = 0; step < 20; ++step) writer.add(rows_of(step, 50), labels_of(step, 50));
    writer.finish();
  }
  Pool pool(3), alone(1);
  const BankSearchOptions ivf{.search = BankSearch::ivf, .lists = 7};
  size_t calls = 0;
  const auto count = [&](size_t, size_t) { ++calls; };
  Bank::open(root / "a").prepare(ivf, pool, count);
  EXPECT_GT(calls, 0u);
  Bank::open(root / "b").prepare(ivf, alone);
  EXPECT_TRUE(test::contents(root / "a") == test::contents(root / "b"));
  calls = 0;
  Bank::open(root / "a").prepare(ivf, pool, count);
  EXPECT_EQ(calls, 0u);
  test::write_file(root / "a/index/codes.npy", "nonsense");
  EXPECT_ERROR("codes.npy", Bank::open(root / "a").prepare(ivf, pool));
}

TEST(Bank, WaysToSearchByName) {
  for (const char* name : {"auto", "exact", "ivf"})
    EXPECT_STREQ(to_string(parse_bank_search(name)), name);
  EXPECT_ERROR("unknown way", parse_bank_search("hnsw"));
}

}  // namespace
}  // namespace fungi
