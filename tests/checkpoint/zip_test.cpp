// SPDX-License-Identifier: Apache-2.0
// Archives that lie about sizes, checksums and methods, and bombs.
#include "fungi/checkpoint/zip.h"

#include "archive.h"
#include "fungi/checkpoint/npy.h"
#include "support.h"

namespace fungi {
namespace {

std::string npy(size_t count) {
  return npy_header("<f4", {count}) + std::string(count * sizeof(float), '\0');
}

TEST(Zip, StoredAndDeflatedEntries) {
  EXPECT_EQ(read_all(zip({stored("a.npy", npy(3)), deflated("b.npy", npy(1000)),
                          stored("c.txt", "no array")})),
            2u);
  EXPECT_EQ(read_all(zip({deflated("a.npy", npy(400'000))})), 1u) << "a thousandth is no bomb";
}

TEST(Zip, NamesAreOnlyNames) {
  const std::string bytes =
      zip({stored("../../etc/passwd.npy", npy(1)), stored("/a/b.npy", npy(1))});
  const auto source = open_source(FileBytes::borrow("memory", std::as_bytes(std::span(bytes))));
  ASSERT_EQ(source->tensors.size(), 2u);
  EXPECT_EQ(source->tensors[0].name, "../../etc/passwd");
  EXPECT_EQ(source->tensors[1].name, "/a/b");
}

TEST(Zip, LiesAreFound) {
  const auto with = [](auto change) {
    TestEntry entry = deflated("a.npy", npy(1000));
    change(entry);
    return open_error(zip({entry}));
  };
  EXPECT_CONTAINS(with([](TestEntry& e) { e.crc ^= 1; }), "entry 'a.npy': is damaged: CRC error");
  EXPECT_CONTAINS(with([](TestEntry& e) { e.size += 4; }), "entry 'a.npy'");
  EXPECT_CONTAINS(with([](TestEntry& e) { e.size -= 4; }), "entry 'a.npy'");
  EXPECT_CONTAINS(with([](TestEntry& e) { e.size = 0xfffffff0; }), "which cannot be");
  EXPECT_CONTAINS(with([](TestEntry& e) { e.method = 12; }), "packed by method 12");
  EXPECT_CONTAINS(with([](TestEntry& e) { e.flags = 1; }), "is encrypted");
  EXPECT_CONTAINS(with([](TestEntry& e) { e.stored[5] = '\x7f'; }), "entry 'a.npy'");
  EXPECT_CONTAINS(with([](TestEntry& e) { e.stored.resize(10); }), "entry 'a.npy'");
  TestEntry longer = stored("a.npy", npy(4));
  longer.size -= 4;
  EXPECT_CONTAINS(open_error(zip({longer})), "entry 'a.npy'");
  EXPECT_CONTAINS(open_error(zip({stored("a.npy", npy(1)), stored("a.npy", npy(1))})),
                  "occurs twice");
  EXPECT_CONTAINS(open_error(zip({stored("readme", "x")})),
                  "without data.pkl (PyTorch) and without .npy");
  EXPECT_CONTAINS(open_error(zip({stored("m/model.json", "{}")})), "before torch 1.4");
  EXPECT_CONTAINS(open_error(zip({})), "without data.pkl");
  EXPECT_CONTAINS(open_error(zip({stored("a.npy", npy(1))}).substr(0, 60)),
                  "not a readable zip archive");
}

TEST(Zip, BombsAreRefusedUnread) {
  const size_t large = size_t{128} << 20;
  EXPECT_CONTAINS(open_error(zip({deflated("a.npy", npy(large / 4))})), "would unpack from");
  // Many moderate entries that together would not fit.
  std::vector<TestEntry> entries;
  const TestEntry one = deflated("x", npy(size_t{8} << 20));
  for (int i = 0; i < 40; ++i) {
    entries.push_back(one);
    entries.back().name = std::to_string(i) + ".npy";
  }
  EXPECT_CONTAINS(open_error(zip(entries)), "would unpack from");
  // A pickle that is larger than any honest one.
  EXPECT_CONTAINS(open_error(zip({stored("archive/data.pkl", std::string(size_t{65} << 20, 'N'))})),
                  "at most 67108864 are accepted");
}

}  // namespace
}  // namespace fungi
