// SPDX-License-Identifier: Apache-2.0
// Published sets of texts: TREC, Banking-77, SST, AG News, TweetEval's emoji.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "fungi/base/error.h"
#include "fungi/base/text.h"
#include "fungi/input/dataset_parts.h"
#include "fungi/input/published_parts.h"
#include "fungi/input/text_records.h"

namespace fungi::dataset {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAgain = "unpack the archive of the data set again";

std::string first_bytes(const fs::path& file, size_t count) {
  std::string bytes(count, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(bytes.data(), std::streamsize(count));
  bytes.resize(size_t(in.gcount()));
  return bytes;
}

// "DESC:manner How did serfdom develop ?"; one byte of the training file is no UTF-8, and stands
// for a blank. The coarse classes in the order in which experiments number them.
PublishedList list_trec(const fs::path& root, const std::string& split) {
  PublishedList list{.class_names = {"ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM"}};
  const ClassNumbers numbers(list.class_names);
  const char* file = split == "train" ? "train_5500.label" : "TREC_10.label";
  size_t count = 0;
  for (ListLine& line : list_lines(root / file)) {
    std::replace(line.text.begin(), line.text.end(), '\xf0', ' ');
    const auto words = list_words(line, 2, "CLASS:kind question");
    list.samples.push_back({std::to_string(++count),
                            numbers.of(words[0].substr(0, words[0].find(':')), line.place),
                            words[1]});
  }
  return list;
}

// "(3 (2 It) (4 (2 's) ...))": the label of a tree is that of its root, its text the leaves.
PublishedList list_sst(const fs::path& root, const std::string& split) {
  const fs::path folder = is_folder(root / "trees") ? root / "trees" : root;
  PublishedList list;
  for (const ListLine& line : list_lines(folder / ((split == "val" ? "dev" : split) + ".txt"))) {
    const std::string& tree = line.text;
    if (tree.size() < 4 || tree[0] != '(' || tree[1] < '0' || tree[1] > '4' || tree[2] != ' ')
      fail(fmt::format("expected a tree '(0 to 4 ...)', found '{}'", tree.substr(0, 20)),
           line.place, kAgain);
    std::string text;
    for (size_t at = 0; at < tree.size();) {
      const size_t end = std::min(tree.find_first_of("() ", at), tree.size());
      // A leaf ends at a bracket; a label, at the blank behind it.
      if (end > at && end < tree.size() && tree[end] == ')')
        text += (text.empty() ? "" : " ") + tree.substr(at, end - at);
      at = end + 1;
    }
    list.samples.push_back({std::to_string(list.samples.size() + 1), tree[1] - '0', text});
  }
  return list;
}

// Goes through a table with quotes: its records as cells, with the line each begins in.
template <class Take>
void each_row(const fs::path& file, const Take& take) {
  if (!is_file(file)) fail("the list is missing", file.string(), kAgain);
  const TextFile text(file);
  const Dialect quoted{TextFormat::quoted, ','};
  TextRecords rows(text, quoted);
  while (rows.next()) take(cells_of(rows.record(), quoted, rows.place()), rows);
}

// "3","title","description", no header; classes.txt has the names.
PublishedList list_ag_news(const fs::path& root, const std::string& split) {
  PublishedList list;
  for (const ListLine& line : list_lines(root / "classes.txt"))
    list.class_names.push_back(list_words(line, 1, "class")[0]);
  each_row(root / (split + ".csv"), [&](const auto& cells, const TextRecords& rows) {
    if (cells.size() != 3)
      fail(fmt::format("expected a class, a title and a description, found {} cells", cells.size()),
           rows.place(), kAgain);
    const size_t label = list_number(cells[0], 1, list.class_names.size(), rows.place());
    list.samples.push_back(
        {std::to_string(rows.line()), int(label) - 1, cells[1] + " " + cells[2]});
  });
  return list;
}

// "text,category" with a header. Classes in the order of the alphabet, whatever their case.
PublishedList list_banking(const fs::path& root, const std::string& split) {
  PublishedList list;
  std::vector<std::pair<std::string, std::string>> names;  // lower, as written
  std::vector<std::string> found;
  each_row(root / "train.csv", [&](const auto& cells, const TextRecords& rows) {
    if (rows.line() > 1 && cells.size() == 2) names.emplace_back(lower(cells[1]), cells[1]);
  });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const auto& [plain, name] : names) list.class_names.push_back(name);
  const ClassNumbers numbers(list.class_names);
  each_row(root / (split + ".csv"), [&](const auto& cells, const TextRecords& rows) {
    if (rows.line() == 1) return;
    if (cells.size() != 2)
      fail(fmt::format("expected a text and its category, found {} cells", cells.size()),
           rows.place(), kAgain);
    list.samples.push_back(
        {std::to_string(rows.line()), numbers.of(cells[1], rows.place()), cells[0]});
  });
  return list;
}

// train_text.txt and train_labels.txt, line by line; mapping.txt has number, emoji, name.
PublishedList list_tweet_eval(const fs::path& root, const std::string& split) {
  PublishedList list;
  for (const ListLine& line : list_lines(root / "mapping.txt")) {
    const auto words = list_words(line, 2, "number name");
    list_number(words[0], list.class_names.size(), list.class_names.size(), line.place);
    list.class_names.push_back(words[1].substr(words[1].find('\t') + 1));
  }
  const auto texts = list_lines(root / (split + "_text.txt")),
             labels = list_lines(root / (split + "_labels.txt"));
  if (texts.size() != labels.size())
    fail(
        fmt::format("expected a label for each of {} texts, found {}", texts.size(), labels.size()),
        (root / (split + "_labels.txt")).string(), kAgain);
  for (size_t i = 0; i < texts.size(); ++i)
    list.samples.push_back(
        {std::to_string(i + 1),
         int(list_number(labels[i].text, 0, list.class_names.size() - 1, labels[i].place)),
         texts[i].text});
  return list;
}

}  // namespace

std::vector<PublishedReader> text_readers() {
  return {
      {.set = {.key = "trec",
               .title = "TREC, coarse",
               .samples = SampleKind::text,
               .classes = 6,
               .splits = {{.name = "train",
                           .samples = 5452,
                           .counts = {86, 1250, 1162, 1223, 835, 896}},
                          {.name = "test",
                           .samples = 500,
                           .counts = {9, 94, 138, 65, 81, 113}}}},
       .lies_at = [](const fs::path& root) { return is_file(root / "train_5500.label"); },
       .list = list_trec},
      {.set = {.key = "sst",
               .title = "SST, fine-grained",
               .samples = SampleKind::text,
               .classes = 5,
               .splits = {{.name = "train",
                           .samples = 8544,
                           .counts = {1092, 2218, 1624, 2322, 1288}},
                          {.name = "val",
                           .samples = 1101,
                           .counts = {139, 289, 229, 279, 165}},
                          {.name = "test",
                           .samples = 2210,
                           .counts = {279, 633, 389, 510, 399}}}},
       .lies_at =
           [](const fs::path& root) {
             const fs::path folder = is_folder(root / "trees") ? root / "trees" : root;
             if (!is_file(folder / "train.txt") || !is_file(folder / "dev.txt")) return false;
             const std::string head = first_bytes(folder / "dev.txt", 3);
             return head.size() == 3 && head[0] == '(' && head[2] == ' ';
           },
       .list = list_sst},
      {.set = {.key = "agnews",
               .title = "AG News",
               .samples = SampleKind::text,
               .classes = 4,
               .splits = {{"train", 120000, 30000, 30000}, {"test", 7600, 1900, 1900}}},
       .lies_at =
           [](const fs::path& root) {
             if (!is_file(root / "classes.txt") || !is_file(root / "train.csv")) return false;
             const std::string head = first_bytes(root / "train.csv", 4);  // no header
             return head.size() == 4 && head[0] == '"' && head[1] >= '1' && head[1] <= '4' &&
                    head.substr(2) == "\",";
           },
       .list = list_ag_news,
       .inside = {"ag_news_csv"}},
      {.set = {.key = "banking77",
               .title = "Banking-77",
               .samples = SampleKind::text,
               .classes = 77,
               .splits = {{.name = "train",
                           .samples = 10003,
                           .counts = {159, 110, 126, 87, 127, 171, 181, 156, 157, 129, 59,
                                      153, 112, 139, 112, 187, 168, 167, 61, 177, 160, 122,
                                      86, 35, 129, 153, 173, 133, 182, 121, 121, 121, 112,
                                      118, 166, 137, 126, 97, 106, 129, 98, 82, 121, 120, 105,
                                      159, 143, 149, 148, 115, 95, 162, 169, 161, 129, 108,
                                      111, 114, 114, 145, 97, 146, 103, 175, 172, 113, 171,
                                      128, 102, 104, 113, 126, 41, 135, 121, 180, 163}},
                          {"test", 3080, 40, 40}}},
       .lies_at =
           [](const fs::path& root) {
             return is_file(root / "categories.json") && is_file(root / "train.csv");
           },
       .list = list_banking,
       .inside = {"banking_data"}},
      {.set = {.key = "tweeteval",
               .title = "TweetEval, emoji",
               .samples = SampleKind::text,
               .classes = 20,
               .splits = {{.name = "train",
                           .samples = 45000,
                           .counts = {9204, 4901, 4713, 2043, 2146, 2132, 2078, 2345, 1287,
                                      1391, 1982, 946, 1246, 980, 1224, 934, 1350, 1397, 1510,
                                      1191}},
                          {.name = "val",
                           .samples = 5000,
                           .counts = {1056, 521, 504, 308, 243, 238, 204, 199, 177, 171, 159,
                                      143, 129, 153, 129, 148, 137, 121, 129, 131}},
                          {.name = "test",
                           .samples = 50000,
                           .counts = {10798, 4830, 4534, 2605, 3716, 1613, 1996, 2749, 1549,
                                      1175, 1432, 1949, 1265, 1114, 1306, 1244, 1153, 1545,
                                      2417, 1010}}}},
       .lies_at =
           [](const fs::path& root) {
             return is_file(root / "mapping.txt") && is_file(root / "train_labels.txt");
           },
       .list = list_tweet_eval,
       .inside = {"emoji", "datasets/emoji"}},
  };
}

}  // namespace fungi::dataset
