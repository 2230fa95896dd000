// SPDX-License-Identifier: Apache-2.0
// What lists may look like beside RFC 4180, and which key of JSON gives the label, in lists and in
// archives.
#include <gtest/gtest.h>

#include "fungi/base/error.h"
#include "fungi/input/dataset.h"
#include "tests/input/pattern.h"
#include "tests/input/tar_writer.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

using test::TemporaryFolder;
using testing::golden_image;
using testing::TarWriter;

// "id=class" of each sample; no class: "id=".
std::vector<std::string> rows(const Dataset& data) {
  std::vector<std::string> out;
  for (size_t i = 0; i < data.size(); ++i) {
    const int label = data.label(i);
    out.push_back(data.id(i) + "=" +
                  (label < 0                    ? ""
                   : data.class_names().empty() ? std::to_string(label)
                                                : data.class_names()[size_t(label)]));
  }
  return out;
}

std::vector<std::string> rows_of(const char* name, const std::string& text) {
  const TemporaryFolder root;
  root.write(name, text);
  return rows(*open_dataset(root.path() / name));
}

using Rows = std::vector<std::string>;

TEST(ListText, LinesMayEndByACarriageReturn) {
  const Rows labelled = {"a.jpg=coat", "b.jpg=bag"}, bare = {"a.jpg=", "b.jpg="};
  for (const std::string end : {"\n", "\r\n", "\r", "\r\r"}) {
    SCOPED_TRACE(end.size() + (end[0] == '\r' ? 10 : 0));
    for (const std::string& last : {end, std::string()}) {
      EXPECT_EQ(rows_of("l.csv", "a.jpg,coat" + end + "b.jpg,bag" + last), labelled);
      EXPECT_EQ(rows_of("l.csv", "path,label" + end + "a.jpg,\"coat\"" + end + "b.jpg,bag" + last),
                labelled);
      EXPECT_EQ(rows_of("l.tsv", "a.jpg\tcoat" + end + "b.jpg\tbag" + last), labelled);
      EXPECT_EQ(rows_of("l.txt", "a.jpg" + end + "b.jpg" + last), bare);
      EXPECT_EQ(rows_of("l.jsonl", R"({"path": "a.jpg", "label": "coat"})" + end +
                                       R"({"path": "b.jpg", "label": "bag"})" + last),
                labelled);
    }
  }
  EXPECT_EQ(rows_of("l.txt", "a.jpg\rb,c.jpg\r"), (Rows{"a.jpg=", "b,c.jpg="}))
      << "only the first line tells whether there are columns";
  EXPECT_EQ(rows_of("l.csv", "a.jpg,\"two\rlines\"\r"), (Rows{"a.jpg=two\rlines"}));
}

TEST(ListText, BlanksMayStandAroundQuotes) {
  EXPECT_EQ(rows_of("l.csv", "a.jpg, \"x\"\n \"b,c.jpg\" ,\" y\"  \nd.jpg,  \"\"\n"),
            (Rows{"a.jpg=x", "b,c.jpg= y", "d.jpg="}));
  EXPECT_EQ(rows_of("l.csv", "a.jpg,5\" nail\n"), (Rows{"a.jpg=5\" nail"}))
      << "a quote inside text is text";
  EXPECT_EQ(rows_of("l.tsv", "a.jpg\t\"Hello\" he said\nb.jpg\t\"big\" pizza\n"),
            (Rows{"a.jpg=Hello he said", "b.jpg=big pizza"}))
      << "as captions have it";
}

TEST(ListText, NoCellIsLost) {
  EXPECT_ERROR("line 3 has 3 cells, 'b.jpg', 'cat', 'striped'; the header names 2",
               rows_of("l.csv", "path,label\na.jpg,cat\nb.jpg,cat, striped\n"));
  EXPECT_ERROR("line 2 has 3 cells", rows_of("l.csv", "a.jpg,cat\nb.jpg,cat,striped\n"));
  EXPECT_ERROR("line 1 has 3 cells, 'a.jpg', 'cat', 'striped'; a line without a header has two",
               rows_of("l.txt", "a.jpg,cat,striped\n"));
  EXPECT_ERROR("into double quotes", rows_of("l.tsv", "path\tlabel\na.jpg\tcat\tstriped\n"));
  EXPECT_EQ(rows_of("l.csv", "path,label,split\na.jpg,cat,val\nb.jpg,\"cat, striped\"\n"),
            (Rows{"a.jpg=cat", "b.jpg=cat, striped"}));
  EXPECT_EQ(rows_of("l.csv", "path,label\na.jpg,cat,,\n"), (Rows{"a.jpg=cat"}))
      << "empty cells at the end, as spreadsheets write them, lose nothing";
}

TEST(ListText, TheFirstLineTellsTheSeparator) {
  EXPECT_EQ(rows_of("l.csv", "path\tlabel\na.jpg\tcat, striped\n"), (Rows{"a.jpg=cat, striped"}));
  EXPECT_EQ(rows_of("l.csv", "path,label\na.jpg,cat\tstriped\n"), (Rows{"a.jpg=cat\tstriped"}));
  EXPECT_EQ(rows_of("l.tsv", "path,label\na.jpg,cat\n"), (Rows{"a.jpg=cat"}));
  EXPECT_EQ(rows_of("l.tsv", "a,b.jpg\n"), (Rows{"a,b.jpg="}));
}

// As the lists of ImageNet and Places are.
TEST(ListText, PathAndLabelMayBeSeparatedByBlanks) {
  const Rows labelled = {"n01/a.jpg=3", "my pictures/b c.png=14"};
  EXPECT_EQ(rows_of("l.txt", "n01/a.jpg 3\nmy pictures/b c.png   14\n"), labelled);
  EXPECT_EQ(rows_of("l.txt", "path label\r\nn01/a.jpg 3 \r\n\r\nmy pictures/b c.png 14"), labelled);
  EXPECT_EQ(rows_of("l.txt", "my pictures/a.jpg\nb c.jpg\n"),
            (Rows{"my pictures/a.jpg=", "b c.jpg="}));
  const TemporaryFolder root;  // a file may have such a name
  root.write("a.jpg 3", "x");
  root.write("l.txt", "a.jpg 3\nb.jpg 4\n");
  EXPECT_EQ(rows(*open_dataset(root.path() / "l.txt")), (Rows{"a.jpg 3=", "b.jpg 4="}));
  EXPECT_ERROR("line 2 has no label", rows_of("l.txt", "a.jpg 3\nb.jpg\n"));
  EXPECT_ERROR("line 2 has no label", rows_of("l.txt", "a.jpg 3\nmy pictures/b.jpg\n"));
  EXPECT_ERROR("line 2 has more than a path and a label",
               rows_of("l.txt", "a.jpg 3\nb.jpg tabby cat\n"));
}

TEST(LabelKeys, TheFirstOfTheTextCountsInListsAndArchives) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("class": "cat", "target": 7)", "cat"},
      {R"("target": 7, "class": "cat")", "7"},
      {R"("label": "cat", "class": "dog")", "cat"},
      {R"("more": {"class": "dog"}, "Label": "cat", "label": "cow")", "cat"},
      {R"("CATEGORY": 3, "list": [{"cls": 1}])", "3"},
      {R"("class": null, "label": "cat")", "cat"},
      {R"("Path": "other.png", "species": "cat")", ""}};
  for (const auto& [keys, label] : cases) {
    SCOPED_TRACE(keys);
    const std::string object = std::string(R"({"file": "a.png", )") + keys + "}";
    EXPECT_EQ(rows_of("l.jsonl", object), (Rows{"a.png=" + std::string(label)}));
    const TemporaryFolder root;
    {
      TarWriter tar(root.path() / "a.tar");
      tar.file("a.png", golden_image("rgb8.png"));
      tar.text("a.json", object);
    }
    EXPECT_EQ(rows(*open_dataset(root.path() / "a.tar")), (Rows{"a=" + std::string(label)}));
  }
}

}  // namespace
}  // namespace fungi
