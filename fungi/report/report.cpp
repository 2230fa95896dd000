// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "fungi/evaluate/cka.h"
#include "fungi/evaluate/classify.h"
#include "fungi/evaluate/fewshot.h"
#include "fungi/evaluate/metrics.h"
#include "fungi/feature/pca.h"
#include "fungi/report/html.h"
#include "fungi/search/knn.h"

namespace fungi {
namespace {

struct Result {
  std::string features;
  KnnScore score;
  Neighbours neighbours;
};

std::vector<std::string> block_names(const Store& store) {
  std::vector<std::string> names;
  for (const StoreBlock& b : store.manifest().spec.blocks)
    if (b.name.find("_factors_") == std::string::npos) names.push_back(b.name);
  return names;
}

struct Rows {
  Matrix<float> train, test;
};

Rows load(const Store& train, const Store& test, const std::string& features, size_t pca, Pool& pool) {
  Rows rows{train.load(features).features, test.load(features).features};
  if (Pca::applies(pca, rows.train.rows(), rows.train.cols())) {
    const Pca fitted = Pca::fit(rows.train, pca, pool);
    rows = {fitted.transform(rows.train, pool), fitted.transform(rows.test, pool)};
  }
  return rows;
}

std::string accuracy_section(const std::vector<Result>& results) {
  std::string table = "<table><tr><th>features</th><th>top-1 %</th><th>mean per class %</th></tr>";
  std::vector<html::Bar> bars;
  for (const Result& r : results) {
    table += fmt::format("<tr><td>{}</td><td>{:.2f}</td><td>{:.2f}</td></tr>", html::escape(r.features), 100 * r.score.accuracy, 100 * r.score.mean_per_class);
    bars.push_back({r.features, 100 * r.score.accuracy, fmt::format("{:.2f}", 100 * r.score.accuracy)});
  }
  return "<h2>Nearest-neighbour accuracy</h2>" + html::bars(bars, 0, 100) + table + "</table>";
}

std::string class_section(const Result& plain, const Result& full, Labels targets, const std::vector<std::string>& classes) {
  const auto before = accuracy_by_class(plain.score.votes.predicted, targets), after = accuracy_by_class(full.score.votes.predicted, targets);
  std::vector<html::Bar> bars;
  for (size_t i = 0; i < before.size(); ++i) {
    const double change = 100 * (double(after[i].correct) - double(before[i].correct)) / double(before[i].total);
    const auto label = size_t(before[i].label);
    bars.push_back({label < classes.size() ? classes[label] : std::to_string(label), change, fmt::format("{:+.1f}", change)});
  }
  std::stable_sort(bars.begin(), bars.end(), [](const auto& x, const auto& y) { return x.value > y.value; });
  if (bars.size() > 24) bars.erase(bars.begin() + 12, bars.end() - 12);
  double low = 0, high = 1;
  for (const auto& b : bars) low = std::min(low, b.value), high = std::max(high, b.value);
  return fmt::format("<h2>Change per class</h2><p class=note>points of accuracy, {} against {}</p>", html::escape(full.features), html::escape(plain.features)) + html::bars(bars, low, high);
}

std::string few_shot_section(const Store& train, const Store& test, const std::vector<std::string>& features, Labels train_labels, Labels targets, const ReportOptions& o, Pool& pool) {
  const Classes classes = classes_of(train_labels);
  const size_t smallest = *std::min_element(classes.sizes.begin(), classes.sizes.end());
  std::vector<size_t> shots;
  std::vector<std::string> names;
  for (size_t s : {1u, 2u, 5u, 10u, 20u, 50u})
    if (s <= smallest) shots.push_back(s), names.push_back(std::to_string(s));
  if (shots.size() < 2) return "";
  std::vector<html::Line> lines;
  for (const std::string& f : {features.front(), features.back()}) {
    html::Line line{f, {}};
    const Matrix<float> x = train.load(f).features, y = test.load(f).features;
    for (size_t s : shots) {
      const auto rows = first_per_class(train_labels, s);
      const Matrix<float> few = gather(x.view(), rows);
      line.y.push_back(100 * classify(few, gather(train_labels, rows), y, targets, {.k = std::min(o.k, s)}, pool).accuracy);
    }
    lines.push_back(line);
  }
  return "<h2>With few labels</h2>" + html::line_chart(names, lines, "top-1 % against training rows per class (no PCA, k = at most the rows per class)");
}

std::string neighbour_row(const Result& r, size_t query, Labels train_labels, int64_t target, const Dataset& pictures, const std::unordered_map<std::string, size_t>& place,
                          const std::vector<std::string>& ids, size_t shown) {
  std::string out = fmt::format("<div class=row><span class=who>{}</span>", html::escape(r.features == "embedding" ? r.features : "with gradients"));
  for (size_t i = 0; i < std::min<size_t>(shown, r.neighbours.index.cols()); ++i) {
    const size_t row = r.neighbours.index(query, i);
    const auto found = place.find(ids[row]);
    if (found != place.end()) out += html::picture(pictures.read(found->second), ids[row], train_labels[row] == target ? "good" : "bad");
  }
  return out + "</div>";
}

std::unordered_map<std::string, size_t> places(const Dataset& data) {
  std::unordered_map<std::string, size_t> map;
  for (size_t i = 0; i < data.size(); ++i) map[data.id(i)] = i;
  return map;
}

std::string grid_section(const Result& plain, const Result& full, const FeatureSet& train, const FeatureSet& test, Labels targets, const Dataset& train_pictures, const Dataset& test_pictures,
                         const ReportOptions& o) {
  if (train_pictures.kind() == DatasetKind::cifar || train_pictures.kind() == DatasetKind::idx) return "";  // raw records are no image files
  std::vector<size_t> chosen;  // first where the two disagree: that is where the gradients matter
  for (bool disagree : {true, false})
    for (size_t i = 0; i < test.ids.size() && chosen.size() < o.queries; ++i) {
      const bool differ = (plain.score.votes.predicted[i] == targets[i]) != (full.score.votes.predicted[i] == targets[i]);
      if (differ == disagree && (disagree || i % std::max<size_t>(1, test.ids.size() / o.queries) == 0)) chosen.push_back(i);
    }
  const auto train_place = places(train_pictures), test_place = places(test_pictures);
  std::string out = "<h2>Neighbours</h2><p class=note>left: the query; green: same class, red: another. Queries on which the two kinds of features disagree come first.</p>";
  for (size_t q : chosen) {
    const auto found = test_place.find(test.ids[q]);
    if (found == test_place.end()) continue;
    out += "<div class=query><div class=row>" + html::picture(test_pictures.read(found->second), test.ids[q], "") + fmt::format("<b>{}</b></div>", html::escape(test.ids[q]));
    for (const Result* r : {&plain, &full}) out += neighbour_row(*r, q, train.labels, targets[q], train_pictures, train_place, train.ids, o.shown_neighbours);
    out += "</div>";
  }
  return out;
}

std::string map_section(const Store& test, const std::vector<std::string>& features, Labels targets, Pool& pool) {
  std::string out = "<h2>Map of the test rows</h2><p class=note>first two principal components; colours are classes</p><div class=two>";
  for (const std::string& f : {features.front(), features.back()}) {
    const Matrix<float> rows = test.load(f).features;
    if (!Pca::applies(2, rows.rows(), rows.cols())) return "";
    out += fmt::format("<figure>{}<figcaption>{}</figcaption></figure>", html::scatter(Pca::fit(rows, 2, pool).transform(rows, pool), targets), html::escape(f));
  }
  return out + "</div>";
}

}  // namespace

std::string make_report(const Store& train, const Store& test, const Dataset* train_pictures, const Dataset* test_pictures, const ReportOptions& o, Pool& pool) {
  const std::vector<std::string> blocks = block_names(train);
  std::vector<std::string> combinations;
  for (const std::string& b : blocks) combinations.push_back(combinations.empty() ? b : combinations.back() + "+" + b);
  const FeatureSet train_rows = train.load(blocks.front()), test_rows = test.load(blocks.front());
  const std::vector<int64_t> targets = align_labels(train_rows.classes, test_rows);
  std::vector<Result> results;
  for (const std::string& f : combinations) {
    const Rows rows = load(train, test, f, o.pca, pool);
    Neighbours n = knn(rows.train, rows.test, std::min(o.k, rows.train.rows()), pool);
    KnnScore score = score_votes(vote(n, train_rows.labels), train_rows.labels, targets);
    results.push_back({f, std::move(score), std::move(n)});
  }
  std::vector<FeatureSet> sets;
  std::vector<View<const float>> views;
  for (const std::string& b : blocks) sets.push_back(test.load(b));
  for (const FeatureSet& s : sets) views.push_back(s.features);

  std::string body = fmt::format("<h1>What the gradients add</h1><p class=note>{} training rows, {} test rows, {} classes; k = {}, PCA {} where it applies; model {}</p>", train.rows(), test.rows(),
                                 train_rows.classes.size(), o.k, o.pca, html::escape(train.manifest().spec.model_path));
  body += accuracy_section(results);
  if (results.size() > 1) {
    body += class_section(results.front(), results.back(), targets, train_rows.classes);
    body += few_shot_section(train, test, combinations, train_rows.labels, targets, o, pool);
    if (train_pictures && test_pictures) body += grid_section(results.front(), results.back(), train_rows, test_rows, targets, *train_pictures, *test_pictures, o);
    body += "<h2>Similarity of the blocks</h2><p class=note>linear CKA on the test rows: 1 = the same up to rotation and scale</p>" + html::heat_map(blocks, linear_cka(views, pool));
    body += map_section(test, combinations, targets, pool);
  }
  body += fmt::format("<h2>Settings</h2><pre>{}</pre>", html::escape(to_text(describe_store(train.folder(), 0))));
  return html::page("fungi report", body);
}

}  // namespace fungi
