// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <nlohmann/json.hpp>

#include "fungi/evaluate/cka.h"
#include "fungi/evaluate/combinations.h"
#include "fungi/evaluate/fewshot.h"
#include "fungi/evaluate/layers.h"
#include "fungi/evaluate/metrics.h"
#include "fungi/evaluate/pair.h"
#include "fungi/evaluate/seeds.h"
#include "fungi/feature/comparable.h"
#include "fungi/feature/feature_rows.h"
#include "fungi/report/evaluation.h"
#include "fungi/report/html.h"
#include "fungi/report/neighbours.h"

namespace fungi {
namespace {

using report::Change;
using report::Evaluation;
using report::Result;

constexpr const char *kCkaTitle = "Similarity of the blocks", *kMapTitle = "Map of the test rows";

const char* direction(double value) { return value > 0 ? "up" : value < 0 ? "down" : ""; }

// A difference within two standard errors gets no colour: it may be chance.
const char* direction(const Change& c) {
  return std::abs(c.share) > 2 * c.standard_error ? direction(c.share) : "";
}

std::string points(const Change& c) {
  return fmt::format("{:+.2f} ± {:.2f}", 100 * c.share, 100 * c.standard_error);
}

std::string reduction(const ReportOptions& o) {
  return o.reduce == Reduce::pca ? "PCA"
                                 : fmt::format("a random matrix ({})", to_string(o.reduce));
}

std::string headline(const Evaluation& e, const ReportOptions& o, const std::string& model) {
  const Change c = report::compare(e.plain().score.votes.predicted, e.full().score.votes.predicted,
                                   e.test.labels);
  std::string out = fmt::format(
      "<h1>What the gradients add</h1><p class=note>{} training rows, {} test rows, {} classes; "
      "nearest neighbours with k = {}, {} to {} where it applies; model {}</p>",
      e.train.ids.size(), e.test.ids.size(), e.classes.size(), o.k, reduction(o), o.pca,
      html::escape(model));
  out += fmt::format("<ul class=tiles><li><strong>{:.2f} %</strong><span>{}</span></li>",
                     100 * e.plain().score.accuracy, html::breakable(e.plain().features));
  if (e.results.size() > 1)
    out += fmt::format(
        "<li><strong>{:.2f} %</strong><span>{}</span></li><li><strong "
        "class=\"{}\">{}</strong><span>points; {} rows gained, {} lost</span></li>",
        100 * e.full().score.accuracy, html::breakable(e.full().features), direction(c), points(c),
        c.gained, c.lost);
  return out + "</ul>";
}

std::string accuracy_section(const Evaluation& e) {
  std::string out = fmt::format(
      "<h2>Accuracy of {}</h2><div class=scroll><table class=wide><caption>± of "
      "top-1 is the binomial standard error; ± of the change is paired, row by row; beyond two of "
      "them it is coloured. "
      "Bold: one block more at a time.</caption><thead><tr><th scope=col>features</th><td "
      "class=bar></td><th scope=col>top-1 %</th><th scope=col>±</th><th scope=col>change to {}</th>"
      "<th scope=col>mean per class %</th></tr></thead><tbody>",
      e.blocks.size() > kMostCombined ? "each block, and of one more at a time"
                                      : "every combination",
      html::escape(e.plain().features));
  const size_t n = e.test.ids.size();
  for (const Result& r : e.results) {
    const double accuracy = r.score.accuracy;
    const Change c =
        report::compare(e.plain().score.votes.predicted, r.score.votes.predicted, e.test.labels);
    out += fmt::format(
        "<tr class=\"{}\"><th scope=row>{}</th>{}<td>{:.2f}</td><td>{:.2f}</td><td "
        "class=\"{}\">{}</td><td>{:.2f}</td></tr>",
        r.step ? "steps" : "", html::breakable(r.features),
        html::bar_cell(100 * accuracy, 0, 100, r.features == e.plain().features ? "" : "grads"),
        100 * accuracy, 100 * standard_error(accuracy, n), direction(c),
        &r == &e.plain() ? "" : points(c), 100 * r.score.mean_per_class);
  }
  return out + "</tbody></table></div>";
}

// The draws of heads, projections and crops beside the error of the test rows.
std::string seeds_section(const Evaluation& e, const ReportOptions& o, Pool& pool) {
  if (o.draws.empty()) return "";
  const report::OverDraws over = report::evaluate_draws(e, o, pool);
  std::string list;
  for (const ReportDraw& draw : o.draws)
    list += (list.empty() ? "" : ", ") + std::to_string(draw.seed);
  std::string out = fmt::format(
      "<h2>Over {} seeds</h2><div class=scroll><table class=wide><caption>Seeds {}; ± is the "
      "standard deviation over them, the error of the test rows comes on top. All else on this "
      "page is of seed {}.</caption><thead><tr><th scope=col>features</th><td class=bar></td>"
      "<th scope=col>top-1 %</th><th scope=col>±</th><th scope=col>change to {}</th><th "
      "scope=col>±</th></tr></thead><tbody>",
      o.draws.size(), list, o.draws[0].seed, html::escape(e.plain().features));
  for (size_t c = 0; c < e.results.size(); ++c) {
    const Spread accuracy = spread_of(over.accuracy[c]), change = spread_of(over.change[c]);
    out += fmt::format(
        "<tr class=\"{}\"><th scope=row>{}</th>{}<td>{:.2f}</td><td>{:.2f}</td><td>{}</td><td>{}"
        "</td></tr>",
        e.results[c].step ? "steps" : "", html::breakable(e.results[c].features),
        html::bar_cell(100 * accuracy.mean, 0, 100, c ? "grads" : ""), 100 * accuracy.mean,
        100 * accuracy.deviation, c ? fmt::format("{:+.2f}", 100 * change.mean) : "",
        c ? fmt::format("{:.2f}", 100 * change.deviation) : "");
  }
  return out + "</tbody></table></div>";
}

// Gradients of several layers as curves over the depth of the network: alone, and beside the
// embedding.
std::string layer_section(const Evaluation& e) {
  std::vector<std::pair<std::string, double>> accuracies;
  for (const Result& r : e.results) accuracies.emplace_back(r.features, 100 * r.score.accuracy);
  const std::vector<LayerCurve> curves = layer_curves(accuracies);
  std::string out;
  for (size_t i = 0; i < curves.size(); ++i) {
    const LayerCurve& first = curves[i];
    const auto together = [&](const LayerCurve& c) {  // of the same blocks: in one chart
      return c.objective == first.objective && c.beside == first.beside && c.blocks == first.blocks;
    };
    if (std::any_of(curves.begin(), curves.begin() + std::ptrdiff_t(i), together)) continue;
    std::vector<std::string> names;
    for (const size_t block : first.blocks) names.push_back(std::to_string(block));
    if (names.size() < 2) continue;
    std::vector<html::Line> lines{
        {e.plain().features, std::vector<double>(names.size(), accuracies[0].second)}};
    for (const LayerCurve& c : curves)
      if (together(c)) lines.push_back({c.part, c.values});
    out += fmt::format("<h3>{}{}</h3>", html::escape(first.objective),
                       first.beside.empty() ? " alone" : " beside " + html::escape(first.beside)) +
           html::line_chart(names, lines, "block", "top-1 %");
  }
  return out.empty() ? "" : "<h2>Gradients across layers</h2>" + out;
}

struct ClassRow {
  std::string name;
  double before = 0, after = 0;  // percent
  size_t total = 0;
  double change() const { return after - before; }
};

std::string class_table(const std::vector<ClassRow>& rows, size_t first, size_t last,
                        double largest, const Evaluation& e) {
  std::string out = fmt::format(
      "<div class=scroll><table class=wide><thead><tr><th scope=col>class</th><td "
      "class=bar></td><th scope=col>change</th><th scope=col>{} %</th><th scope=col>with gradients "
      "%</th>"
      "<th scope=col>test rows</th></tr></thead><tbody>",
      html::escape(e.plain().features));
  for (size_t i = first; i < last; ++i)
    out += fmt::format(
        "<tr><th scope=row>{}</th>{}<td>{:+.1f}</td><td>{:.1f}</td><td>{:.1f}</td><td>{}</td></tr>",
        html::escape(rows[i].name),
        html::bar_cell(rows[i].change(), -largest, largest, direction(rows[i].change())),
        rows[i].change(), rows[i].before, rows[i].after, rows[i].total);
  return out + "</tbody></table></div>";
}

std::string class_section(const Evaluation& e) {
  constexpr size_t kEnds = 12;
  const auto before = accuracy_by_class(e.plain().score.votes.predicted, e.test.labels),
             after = accuracy_by_class(e.full().score.votes.predicted, e.test.labels);
  std::vector<ClassRow> rows;
  double largest = 1;
  for (size_t i = 0; i < before.size(); ++i) {
    const double share = 100 / double(before[i].total);
    rows.push_back({e.classes[size_t(before[i].label)], share * double(before[i].correct),
                    share * double(after[i].correct), before[i].total});
    largest = std::max(largest, std::abs(rows.back().change()));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& x, const auto& y) { return x.change() > y.change(); });
  std::string out = fmt::format(
      "<h2>Gains and losses per class</h2><p class=note>points of accuracy, {} against {}</p>",
      html::breakable(e.full().features), html::escape(e.plain().features));
  if (rows.size() <= 2 * kEnds + 6) return out + class_table(rows, 0, rows.size(), largest, e);
  out +=
      fmt::format("<h3>The {} largest gains</h3>", kEnds) + class_table(rows, 0, kEnds, largest, e);
  out += fmt::format("<h3>The {} largest losses</h3>", kEnds) +
         class_table(rows, rows.size() - kEnds, rows.size(), largest, e);
  return out +
         fmt::format("<details><summary>The {} classes between</summary>",
                     rows.size() - 2 * kEnds) +
         class_table(rows, kEnds, rows.size() - kEnds, largest, e) + "</details>";
}

std::string few_shot_section(const Store& train, const Store& test, const Evaluation& e,
                             const ReportOptions& o, Pool& pool) {
  const Classes classes = classes_of(e.train.labels);
  const size_t smallest = *std::min_element(classes.sizes.begin(), classes.sizes.end());
  std::vector<size_t> shots;
  std::vector<std::string> names;
  for (const size_t s : {1u, 2u, 5u, 10u, 20u, 50u})
    if (s <= smallest) shots.push_back(s), names.push_back(std::to_string(s));
  if (shots.size() < 2)
    return "<h2>With few labels</h2><p class=note>left out: a class has fewer than two training "
           "rows</p>";
  std::vector<html::Line> lines;
  for (const std::string& f : {e.plain().features, e.full().features}) {
    html::Line line{f, {}};
    const ScratchMatrix y = load_rows(test, test.select(f), {}, o.memory_limit, pool);
    for (const size_t s : shots) {
      const auto rows = first_per_class(e.train.labels, s);
      const ScratchMatrix x = load_rows(train, train.select(f), {}, o.memory_limit, pool, rows);
      line.y.push_back(100 * classify(x, gather(e.train.labels, rows), y, e.test.labels,
                                      {.k = std::min(o.k, s)}, pool)
                                 .accuracy);
    }
    lines.push_back(line);
  }
  return "<h2>With few labels</h2>" +
         html::line_chart(
             names, lines, "training rows per class",
             fmt::format(
                 "top-1 %; the first rows of each class, no PCA, k = rows per class, at most {}",
                 o.k));
}

// One test row, or a block that is the same everywhere, has no CKA; the rest of the page has.
std::string cka_section(const Store& test, const Evaluation& e, Pool& pool) {
  const std::string head = fmt::format("<h2>{}</h2>", kCkaTitle);
  try {
    return head +
           "<p class=note>linear CKA on the test rows; 1 = the same up to rotation and scale</p>" +
           html::heat_table(e.blocks, linear_cka(test, e.blocks, pool));
  } catch (const Error& error) {
    return head + fmt::format("<p class=note>left out: {}</p>", html::escape(error.message()));
  }
}

std::string map_section(const Store& test, const Evaluation& e, const ReportOptions& o,
                        Pool& pool) {
  constexpr size_t kMostPoints = 4000, kMostNames = 40;
  const std::string head = fmt::format("<h2>{}</h2>", kMapTitle);
  const size_t every = (e.test.ids.size() + kMostPoints - 1) / kMostPoints;
  std::vector<size_t> chosen;
  for (size_t i = 0; i < e.test.ids.size(); i += every) chosen.push_back(i);
  std::string figures;
  for (const std::string& f : {e.plain().features, e.full().features}) {
    const ScratchMatrix rows = load_rows(test, test.select(f), {}, o.memory_limit, pool, chosen);
    if (!Pca::applies(2, rows.rows(), rows.cols()))
      return head + "<p class=note>left out: it needs more than two rows and columns</p>";
    const Pca pca = Pca::fit(rows, 2, pool);
    if (!(pca.total_variance() > 0))
      return head + fmt::format("<p class=note>left out: all rows of {} are the same</p>",
                                html::breakable(f));
    const double shown = 100 * double(pca.explained_variance()[0] + pca.explained_variance()[1]) /
                         double(pca.total_variance());
    figures +=
        fmt::format("<figure>{}<figcaption>{}; {:.0f} % of the variance</figcaption></figure>",
                    html::scatter(pca.transform(rows, pool), gather(e.test.labels, chosen),
                                  e.classes, "Test rows in two dimensions, " + f),
                    html::breakable(f), shown);
  }
  return head +
         fmt::format(
             "<p class=note>first two principal components{}; colours are "
             "classes{}</p>{}<div class=two>{}</div>",
             every > 1 ? fmt::format(" of {} rows, evenly chosen", chosen.size()) : "",
             e.classes.size() <= kMostNames ? ", press one to pick it out" : ", named on hovering",
             e.classes.size() <= kMostNames ? html::legend(e.classes) : "", figures);
}

// What the memory cannot hold costs its section, not the page.
template <class Section>
std::string within_memory(const char* title, const Section& section) {
  try {
    return section();
  } catch (const std::bad_alloc&) {
    return fmt::format(
        "<h2>{}</h2><p class=note>left out: not enough memory; stores of fewer columns need "
        "less</p>",
        title);
  }
}

std::string setting(std::string_view name, std::string_view value) {
  return fmt::format("<tr><th scope=row>{}</th><td>{}</td></tr>", html::escape(name),
                     html::escape(value));
}

std::string value_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const auto& inner : value) list += (list.empty() ? "" : ", ") + value_text(inner);
  return list;
}

// Every value of a JSON object under its path, e.g. "objectives.dino.width".
void flatten(const nlohmann::json& value, const std::string& path, std::string& rows) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items())
      flatten(inner, path.empty() ? key : path + "." + key, rows);
  } else if (!value.is_null()) {  // null: the version that wrote the store did not say
    rows += setting(path, value_text(value));
  }
}

std::string settings_section(const Store& train, const Store& test, const ReportOptions& o) {
  const StoreManifest& m = train.manifest();
  std::string rows;
  for (const auto& [name, store] :
       {std::pair("training store", &train), std::pair("test store", &test)})
    rows += setting(name, fmt::format("{}: {} rows, {} failed", store->folder().string(),
                                      store->rows(), store->manifest().failed));
  rows += setting("evaluation",
                  fmt::format("k = {}, uniform votes, Euclidean distance, {} {}", o.k,
                              reduction(o), o.pca));
  rows += setting("model", m.spec.model_path) + setting("sha256", m.spec.model_sha256) +
          setting("precision", m.spec.precision);
  for (const StoreOrigin& origin : m.origins)
    rows += setting("made by", fmt::format("fungi {} on {}", origin.version, origin.isa));
  flatten(nlohmann::json::parse(m.spec.settings), "", rows);
  flatten(nlohmann::json::parse(m.spec.architecture), "model", rows);
  return "<h2>Settings</h2><div class=scroll><table class=settings><tbody>" + rows +
         "</tbody></table></div>";
}

}  // namespace

std::vector<std::string> report_notes(const Store& train, const Store& test,
                                      const Dataset* train_pictures, const Dataset* test_pictures) {
  std::vector<std::string> notes{
      note_unknown_classes(train.labels(), align_labels(train.classes(), test))};
  if (train_pictures) notes.push_back(report::note_missing_pictures(train, *train_pictures));
  if (test_pictures) notes.push_back(report::note_missing_pictures(test, *test_pictures));
  std::erase(notes, "");
  return notes;
}

std::string make_report(const Store& train, const Store& test, const Dataset* train_pictures,
                        const Dataset* test_pictures, const ReportOptions& o, Pool& pool) {
  require_comparable(train, test, "", true);
  std::string notes;
  for (const std::string& note : report_notes(train, test, train_pictures, test_pictures))
    notes += fmt::format("<p class=note>Note: {}</p>", html::escape(note));
  const Evaluation e = report::evaluate(train, test, o, pool);
  std::string body = headline(e, o, train.manifest().spec.model_path) + notes +
                     layer_section(e) + accuracy_section(e) + seeds_section(e, o, pool);
  if (e.results.size() > 1) {
    body += class_section(e) + few_shot_section(train, test, e, o, pool);
    body += "<h2>Neighbours, embedding beside gradients</h2>";
    body += train_pictures && test_pictures
                ? report::neighbour_cards(e, train, *train_pictures, *test_pictures, o)
                : "<p class=note>left out: the report was made without the pictures</p>";
    body += within_memory(kCkaTitle, [&] { return cka_section(test, e, pool); });
    body += within_memory(kMapTitle, [&] { return map_section(test, e, o, pool); });
  }
  return html::page("fungi report", body + settings_section(train, test, o));
}

}  // namespace fungi
