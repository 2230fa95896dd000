// SPDX-License-Identifier: Apache-2.0
// The page: well-formed, self-contained, with the numbers of the evaluation; small pieces against
// known values.
#include "fungi/report/report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "fungi/base/base64.h"
#include "fungi/base/random.h"
#include "fungi/evaluate/cka.h"
#include "fungi/pca/pca.h"
#include "fungi/report/evaluation.h"
#include "fungi/report/html.h"
#include "fungi/report/neighbours.h"
#include "fungi/report/thumbnail.h"
#include "tests/support/command.h"
#include "tests/support/made_store.h"
#include "tests/support/plain_cka.h"

namespace fungi {
namespace {

std::string encode(const std::string& text) {
  return to_base64({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

TEST(Html, Base64AsInTheStandard) {  // RFC 4648
  EXPECT_EQ(encode(""), "");
  EXPECT_EQ(encode("f"), "Zg==");
  EXPECT_EQ(encode("fo"), "Zm8=");
  EXPECT_EQ(encode("foo"), "Zm9v");
  EXPECT_EQ(encode("foobar"), "Zm9vYmFy");
}

TEST(Html, EscapesText) {
  EXPECT_EQ(html::escape("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
}

TEST(Html, BytesThatAreNoTextAreReplaced) {  // Unicode 15, table 3-8 and its neighbours: one mark
                                             // per byte that begins no character
  EXPECT_EQ(html::escape("gr\xc3\xbcn \xf0\x9f\x8d\x84"), "gr\xc3\xbcn \xf0\x9f\x8d\x84");
  EXPECT_EQ(html::escape("a\xff"), "a\uFFFD");
  EXPECT_EQ(html::escape("\xc0\xaf"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(html::escape("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(html::escape("\xe2\x82"), "\uFFFD\uFFFD");            // cut short
  EXPECT_EQ(html::escape(std::string_view("\0\x1b", 2)), "\uFFFD\uFFFD");
}

TEST(Html, BarsGrowFromZero) {
  EXPECT_NE(html::bar_cell(25, 0, 100).find("left:0.0%;width:25.0%"), std::string::npos);
  EXPECT_NE(html::bar_cell(-5, -10, 10).find("left:25.0%;width:25.0%"), std::string::npos)
      << html::bar_cell(-5, -10, 10);
  EXPECT_NE(html::bar_cell(10, -10, 10).find("left:50.0%;width:50.0%"), std::string::npos);
}

TEST(Html, EqualValuesHaveAnAxis) {
  for (const auto& [value, tick, height] :
       {std::tuple(100.0, "99.2", "14.0"), std::tuple(0.0, "0.8", "254.0"),
        std::tuple(50.0, "49.6", "134.0")}) {
    const std::string chart =
        html::line_chart({"1", "2"}, {{"a", {value, value}}, {"b", {value, value}}}, "x", "y");
    const auto count = [&](const std::string& text) {
      size_t found = 0;
      for (size_t at = chart.find(text); at != std::string::npos; at = chart.find(text, at + 1))
        ++found;
      return found;
    };
    EXPECT_EQ(count(fmt::format(">{}</text>", tick)), 1u) << chart;
    EXPECT_LE(count(fmt::format(">{:g}</text>", value)), 1u) << chart;
    EXPECT_EQ(count(fmt::format("d=\"M56.0 {0}L616.0 {0}\"", height)), 2u) << chart;
  }
}

TEST(Thumbnail, IsTheCentreSquareShrunkAndNeverGrown) {
  Image wide{60, 20, std::vector<uint8_t>(60 * 20 * 3)};
  for (size_t y = 0; y < 20; ++y)
    for (size_t x = 0; x < 60; ++x)
      for (size_t c = 0; c < 3; ++c) wide.rgb[3 * (y * 60 + x) + c] = x >= 20 && x < 40 ? 200 : 0;
  for (const auto& [side, expected] : {std::pair<size_t, size_t>{10, 10}, {500, 20}}) {
    const Image small = decode_image(thumbnail(wide, side), "thumbnail");
    EXPECT_EQ(small.width, expected);
    EXPECT_EQ(small.height, expected);
    for (const uint8_t v : small.rgb) EXPECT_NEAR(v, 200, 6);  // nothing of the dark sides
  }
}

TEST(Evaluation, ChangeIsPaired) {
  const std::vector<int64_t> targets(10, 1), before{1, 1, 1, 1, 1, 0, 0, 0, 0, 0},
      after{1, 1, 1, 1, 0, 1, 1, 1, 0, 0};
  const report::Change c = report::compare(before, after, targets);
  EXPECT_EQ(c.gained, 3u);
  EXPECT_EQ(c.lost, 1u);
  std::vector<double> d{0, 0, 0, 0, -1, 1, 1, 1, 0, 0};  // the plain formula on the differences
  double mean = 0, variance = 0;
  for (const double x : d) mean += x / 10;
  for (const double x : d) variance += (x - mean) * (x - mean) / 10;
  EXPECT_DOUBLE_EQ(c.share, mean);
  EXPECT_NEAR(c.standard_error, std::sqrt(variance / 10), 1e-15);
}

// Rows of four kinds, so many of each; the two results are told apart by what they predict.
report::Evaluation four_kinds(size_t gained, size_t lost, size_t right, size_t wrong) {
  report::Evaluation e;
  e.results.resize(2);
  const auto add = [&](size_t count, int64_t before, int64_t after) {
    for (size_t i = 0; i < count; ++i) {
      e.test.ids.push_back(std::to_string(e.test.ids.size()));
      e.test.labels.push_back(1);
      e.results[0].score.votes.predicted.push_back(before);
      e.results[1].score.votes.predicted.push_back(after);
    }
  };
  add(gained, 0, 1), add(lost, 1, 0), add(right, 1, 1), add(wrong, 0, 0);
  return e;
}

TEST(Neighbours, QueriesShowGainsAndLossesAlike) {
  const auto counts = [](const report::Evaluation& e, size_t asked) {
    std::array<size_t, 4> n{};
    std::set<size_t> rows;
    for (const report::Query& q : report::choose_queries(e, asked))
      ++n[size_t(q.kind)], rows.insert(q.row);
    EXPECT_EQ(rows.size(), n[0] + n[1] + n[2] + n[3]) << "no row twice";
    return n;
  };
  using Counts = std::array<size_t, 4>;
  EXPECT_EQ(counts(four_kinds(50, 30, 100, 100), 12), (Counts{6, 6, 0, 0}));
  EXPECT_EQ(counts(four_kinds(50, 2, 100, 100), 12), (Counts{10, 2, 0, 0}));
  EXPECT_EQ(counts(four_kinds(1, 50, 100, 100), 12), (Counts{1, 11, 0, 0}));
  EXPECT_EQ(counts(four_kinds(2, 2, 100, 100), 12), (Counts{2, 2, 4, 4}));
  EXPECT_EQ(counts(four_kinds(1, 0, 2, 0), 12), (Counts{1, 0, 2, 0}));
}

TEST(Report, IsOneSelfContainedPage) {
  const test::TemporaryFolder folder;
  const std::string model =
      " -m " FUNGI_GOLDEN_DIR
      "/backbone/timm_vit/model.safetensors --set heads=4 --objectives kl dino:width=16 ";
  const std::string data = FUNGI_SOURCE_DIR "/demo/images/test", train = (folder / "a").string(),
                    test = (folder / "b").string();
  ASSERT_EQ(test::run_fungi("extract " + data + model + "-o " + train).status, 0);
  ASSERT_EQ(
      test::run_fungi("extract " + data + model + "-o " + test + " --limit 40 --like " + train)
          .status,
      0);
  const std::string page_file = (folder / "page.html").string();
  const auto outcome = test::run_fungi("report " + train + " " + test + " -k 3 -o " + page_file +
                                       " --train-pictures " + data + " --test-pictures " + data);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string page = test::read_file(page_file);
  for (const char* section :
       {"Accuracy of every combination", "Gains and losses per class", "With few labels",
        "Neighbours, embedding beside gradients", "Similarity of the blocks",
        "Map of the test rows", "Settings", "embedding+<wbr>kl+<wbr>dino", "kl+<wbr>dino</th>",
        "objectives.dino.width"})
    EXPECT_NE(page.find(section), std::string::npos) << section;
  EXPECT_EQ(page.find("http:"), std::string::npos) << "nothing may come from outside";
  EXPECT_EQ(page.find("https:"), std::string::npos);
  const auto count = [&](const std::string& pattern) {
    const std::regex r(pattern);
    return std::distance(std::sregex_iterator(page.begin(), page.end(), r), std::sregex_iterator());
  };
  for (const char* tag : {"div", "svg", "table", "figure", "p", "h2", "h3", "ul", "li", "tr", "th",
                          "td", "main", "script", "button"})  // every opened element is closed
    EXPECT_EQ(count(std::string("<") + tag + "[ >]"), count(std::string("</") + tag + ">")) << tag;
  EXPECT_EQ(count("<img "), count("<img alt=\"[^\"]+\"")) << "every picture is described";
  EXPECT_EQ(count("<img "), 12 + 12 * 2 * 3)
      << "a query and three neighbours by two kinds of features, twelve times";
  EXPECT_EQ(count("<svg [^>]*role=img"), count("<svg [^>]*role=img aria-label=\"[^\"]+\""));

  // The numbers are those of the knn verb.
  for (const auto& row : nlohmann::json::parse(
           test::run_fungi("knn " + train + " " + test + " -k 3 --all-combinations --json").out))
    EXPECT_NE(
        page.find(fmt::format("<td>{:.2f}</td><td>{:.2f}</td>", 100 * row["accuracy"].get<double>(),
                              100 * row["standard_error"].get<double>())),
        std::string::npos)
        << row;

  // Rows that do not fit the memory granted go through a file: the same page.
  const std::string streamed = page_file + ".streamed";
  const auto small =
      test::run_fungi("report " + train + " " + test + " -k 3 --memory 1kB -o " + streamed +
                      " --train-pictures " + data + " --test-pictures " + data);
  ASSERT_EQ(small.status, 0) << small.err;
  EXPECT_TRUE(test::read_file(streamed) == page);

  // Other pictures than those of the store, or only half of them.
  const auto others = test::run_fungi(
      "report " + train + " " + test + " -o " + page_file +
      " --train-pictures " FUNGI_SOURCE_DIR "/demo/images/train --test-pictures " + data);
  EXPECT_EQ(others.status, 1);
  EXPECT_NE(others.err.find("the pictures do not"), std::string::npos) << others.err;
  EXPECT_NE(others.err.find("or leave out --train-pictures"), std::string::npos) << others.err;
  EXPECT_EQ(test::run_fungi("report " + train + " " + test + " --train-pictures " + data).status,
            2);

  // A picture that was damaged later costs itself alone.
  const std::string damaged = (folder / "damaged").string();
  std::filesystem::copy(data, damaged, std::filesystem::copy_options::recursive);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(damaged))
    if (entry.is_regular_file()) std::ofstream(entry.path()) << "junk";
  const auto without = test::run_fungi("report " + train + " " + test + " -k 3 -o " + streamed +
                                       " --train-pictures " + damaged + " --test-pictures " + data);
  EXPECT_EQ(without.status, 0) << without.err;
  EXPECT_NE(test::read_file(streamed).find("base64,\">"), std::string::npos);

  // A picture that has gone costs its place alone, with a note on the page, too.
  const std::string fewer = (folder / "fewer").string();
  std::filesystem::copy(data, fewer, std::filesystem::copy_options::recursive);
  const std::string gone = Store::open(test).load().ids[0];
  ASSERT_TRUE(std::filesystem::remove(fewer + "/" + gone));
  const auto missing =
      test::run_fungi("report " + train + " " + test + " -k 3 -o " + streamed +
                      " --queries 40 --train-pictures " + data + " --test-pictures " + fewer);
  EXPECT_EQ(missing.status, 0) << missing.err;
  const std::string note =
      fmt::format("{}: 1 of 40 rows have no picture any more, e.g. '{}'", test, gone);
  EXPECT_NE(missing.err.find("note: " + note), std::string::npos) << missing.err;
  const std::string with_note = test::read_file(streamed);
  EXPECT_NE(with_note.find(note), std::string::npos);
  EXPECT_NE(with_note.find(fmt::format("<img alt=\"query {0}\" title=\"query {0}\" "
                                       "src=\"data:image/webp;base64,\">",
                                       gone)),
            std::string::npos);

  // Gradients of two different projections have no distance.
  const std::string other = test + "-other";
  ASSERT_EQ(test::run_fungi("extract " + data + model + "--seed 7 --limit 4 -o " + other).status,
            0);
  const auto refused = test::run_fungi("report " + train + " " + other + " -o " + page_file);
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("its rows cannot be compared: 'settings.seed'"), std::string::npos)
      << refused.err;
}

// Rows of two blocks around one direction per class; `same`: a second block that never changes.
std::vector<test::MadeRow> made_rows(size_t count, bool same) {
  std::vector<test::MadeRow> rows;
  for (size_t i = 0; i < count; ++i) {
    const float x = float(i % 2), y = 0.1f * float(i);
    rows.push_back({fmt::format("{}.png", i),
                    int64_t(i % 2),
                    {{x, 1 - x, y}, same ? std::vector<float>{1, 2, 3} : std::vector{y, x, 1.0f}}});
  }
  return rows;
}

TEST(Report, SectionsThatCannotBeAreLeftOut) {
  const test::TemporaryFolder folder;
  const std::vector<std::string> names{"embedding", "kl"}, classes{"a", "b"};
  test::write_made_store(folder / "train", made_rows(12, false), classes, names);
  test::write_made_store(folder / "one", made_rows(1, false), classes, names);
  test::write_made_store(folder / "same", made_rows(9, true), classes, names);
  test::write_made_store(folder / "good", made_rows(9, false), classes, names);
  Pool pool(2);
  const Store train = Store::open(folder / "train");
  const auto page = [&](const char* test, size_t k) {
    return make_report(train, Store::open(folder / test), nullptr, nullptr, {.k = k}, pool);
  };
  const std::string good = page("good", 3), one = page("one", 3), same = page("same", 3);
  EXPECT_EQ(good.find("left out: expected"), std::string::npos);
  EXPECT_NE(one.find("left out: expected at least two rows, found 1"), std::string::npos);
  EXPECT_NE(same.find("left out: expected rows that differ, block kl has the same row everywhere"),
            std::string::npos);
  for (const std::string& text : {one, same}) {
    EXPECT_NE(text.find("Accuracy of every combination"), std::string::npos);
    EXPECT_EQ(text.find("nan"), std::string::npos);
  }
  // Twelve rows cannot give thirteen neighbours; the page would name a k that it did not use.
  EXPECT_NO_THROW(page("good", 12));
  EXPECT_THROW(page("good", 13), Error);
  EXPECT_THROW(page("good", 0), Error);
}

std::vector<float> at_angle(double degrees) {
  return {float(std::cos(degrees * M_PI / 180)), float(std::sin(degrees * M_PI / 180))};
}

// Every vote is known. Two classes, around 0 and 90 degrees; the first training row of each lies.
// The embeddings of test rows lean by one degree to what they vote for, kl points at it: beside kl
// the embedding has no say.
struct KnownVotes {
  KnownVotes() {
    const std::vector<std::string> names{"embedding", "kl"}, classes{"ant", "bee"};
    std::vector<test::MadeRow> train, test;
    for (const auto& [label, angle] : {std::pair(0, 90), {1, 0}, {0, 10}, {1, 80}})
      train.push_back({std::to_string(train.size()), label, {at_angle(angle), at_angle(angle)}});
    struct Vote {
      int64_t label, embedding, kl;
    };
    for (const Vote& v : {Vote{0, 0, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 1}, {1, 1, 1}, {1, 1, 0}})
      test.push_back({std::to_string(test.size()),
                      v.label,
                      {at_angle(v.embedding ? 46 : 44), at_angle(v.kl ? 90 : 0)}});
    test::write_made_store(folder / "train", train, classes, names);
    test::write_made_store(folder / "test", test, classes, names);
  }
  const test::TemporaryFolder folder;
};

TEST(Report, TablesAndChartsHaveTheNumbersOfTheVotes) {
  const KnownVotes known;
  Pool pool(2);
  const Store train = Store::open(known.folder / "train"),
              test = Store::open(known.folder / "test");
  const std::string page = make_report(train, test, nullptr, nullptr, {.k = 1}, pool);
  const auto expect = [&](const std::string& part) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  };
  expect("<strong>50.00 %</strong><span>embedding</span>");
  expect("<strong>66.67 %</strong><span>embedding+<wbr>kl</span>");
  expect("points; 2 rows gained, 1 lost</span>");
  // Of four ants the embedding had one right, then three; of two bees both, then one.
  expect("<tr><th scope=row>ant</th>" + html::bar_cell(50, -50, 50, "up") +
         "<td>+50.0</td><td>25.0</td><td>75.0</td><td>4</td></tr><tr><th scope=row>bee</th>" +
         html::bar_cell(-50, -50, 50, "down") +
         "<td>-50.0</td><td>100.0</td><td>50.0</td><td>2</td></tr>");
  // One row of each class votes the wrong way round, the second puts it right. The axis ends at 30
  // and 70.
  expect("</svg>embedding</th><td>50.0</td><td>50.0</td></tr>");
  expect("</svg>embedding+<wbr>kl</th><td>33.3</td><td>66.7</td></tr>");
  expect("<path class=\"line s0\" d=\"M56.0 134.0L616.0 134.0\"/>");
  expect("<path class=\"line s1\" d=\"M56.0 234.0L616.0 34.0\"/>");
  // Blocks are compared on the test rows; the two of the training rows are the same.
  const FeatureSet embedding = test.load("embedding"), kl = test.load("kl");
  const double cka = test::plain_cka(embedding.features, kl.features);
  EXPECT_LT(cka, 0.9);
  expect(html::heat_table({"embedding", "kl"}, linear_cka(test, {"embedding", "kl"}, pool)));
  expect(fmt::format("<td style=\"--v:{0:.3f}\">{0:.2f}</td></tr>", cka));
}

TEST(Evaluation, PcaIsFittedOnTheTrainingRowsAndItsRowsKeepTheirLengths) {
  const test::TemporaryFolder folder;
  for (const auto& [name, count] : {std::pair("train", 40), std::pair("test", 30)}) {
    std::vector<test::MadeRow> rows;
    for (size_t i = 0; i < size_t(count); ++i) {
      const RandomStream random(uint64_t(count), "report rows", i);
      std::vector<float> row;
      for (size_t c = 0; c < 8; ++c) row.push_back(float(random.normal(c)));
      rows.push_back({std::to_string(i), int64_t(i % 3), {row}});
    }
    test::write_made_store(folder / name, rows, {"x", "y", "z"});
  }
  Pool pool(2);
  const Store train = Store::open(folder / "train"), test = Store::open(folder / "test");
  const FeatureSet x = train.load(), y = test.load();
  const Pca pca = Pca::fit(x.features, 3, pool);
  const report::Evaluation e = report::evaluate(train, test, {.k = 3, .pca = 3}, pool);
  EXPECT_EQ(e.full().score.votes.predicted,
            classify(pca.transform(x.features, pool), x.labels, pca.transform(y.features, pool),
                     y.labels, {.k = 3}, pool)
                .votes.predicted);
}

TEST(Report, LabelsMayBeAnyNumbers) {  // and the training rows may lack some of them
  const test::TemporaryFolder folder;
  const std::vector<std::string> names{"embedding", "kl"};
  std::vector<test::MadeRow> rows = made_rows(12, false);
  for (test::MadeRow& row : rows) row.label = row.label ? 2000000000 : 7;
  test::write_made_store(folder / "train", rows, {}, names);
  rows[0].label = 2000000001;
  test::write_made_store(folder / "test", rows, {}, names);
  Pool pool(2);
  const std::string page = make_report(Store::open(folder / "train"), Store::open(folder / "test"),
                                       nullptr, nullptr, {.k = 3, .queries = 12}, pool);
  EXPECT_NE(page.find("1 of 12 test rows are of 1 classes without training rows"),
            std::string::npos);
  for (const char* name : {">7<", ">2000000000<", ">2000000001<"})
    EXPECT_NE(page.find(name), std::string::npos) << name;
}

}  // namespace
}  // namespace fungi
