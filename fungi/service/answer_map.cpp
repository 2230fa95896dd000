// SPDX-License-Identifier: Apache-2.0
// The plane that rows are shown on, and what the gradients change for each class.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/random.h"
#include "fungi/evaluate/classify.h"
#include "fungi/evaluate/metrics.h"
#include "fungi/evaluate/pair.h"
#include "fungi/pca/pca.h"
#include "fungi/report/evaluation.h"
#include "fungi/service/layout.h"
#include "fungi/service/refused.h"
#include "fungi/service/state.h"

namespace fungi::service {
namespace {

// Some rows of all, evenly spread: one of each part, drawn, since classes may come in turns.
std::vector<size_t> spread(size_t all, size_t most) {
  std::vector<size_t> rows(std::min(all, most));
  const RandomStream draws(42, "rows of a map");
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t begin = i * all / rows.size(), end = (i + 1) * all / rows.size();
    rows[i] = begin + size_t(draws.uniform(i) * double(end - begin));
  }
  return rows;
}

Matrix<float> vectors_of(const Database& database, const std::vector<size_t>& rows) {
  Matrix<float> out(rows.size(), database.reduction().output_width());
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(database.vector(rows[i]).data(), out.cols(), out.row(i));
  return out;
}

std::shared_ptr<const Database> database_of(Service::State& state,
                                            const Service::State::Snapshot& opened,
                                            const std::string& features, const char* param) {
  try {
    return opened->database(features, state.drawing);
  } catch (const Refused&) {
    throw;
  } catch (const Error& e) {
    throw Refused(400, e.message(), e.hint(), 0, param);
  }
}

// What the k nearest of the other rows vote for; rows without a label do not vote.
std::vector<int64_t> leave_one_out(const Matrix<float>& vectors, Labels labels, size_t k,
                                   Metric metric, Pool& pool) {
  const Neighbours found =
      knn(vectors, vectors, k, pool, {.metric = metric, .skip_same_row = true});
  return vote(found, labels).predicted;
}

Json numbers(View<const float> points, size_t column) {
  Json out = Json::array();
  for (size_t i = 0; i < points.rows; ++i)
    out.push_back(std::round(double(points(i, column)) * 1e5) / 1e5);  // a pixel is larger
  return out;
}

}  // namespace

WebAnswer answer_map(Service::State& state, const WebRequest& request) {
  Holding& held = state.holding(word(request, "store").value_or(""));
  const auto opened = held.now();
  const std::string features = features_expression(word(request, "features").value_or(""));
  const std::string layout = word(request, "layout").value_or("pca");
  if (layout != "pca" && layout != "neighbours")
    refuse(fmt::format("expected pca or neighbours, found '{}'", layout.substr(0, 40)), "layout");
  const size_t limit = number(request, "limit", 2000, 3, 5000);
  const size_t asked = number(request, "k", 20, 1, 1000);
  const auto database = database_of(state, opened, features, "features");
  const std::string key = fmt::format("map {} {} {} {} {} {}", held.name(), opened->version(),
                                      database->reduction().features(), layout, limit, asked);
  return {.body = state.remembered(key, [&] {
    const std::vector<size_t> rows = spread(database->rows(), limit);
    if (!Pca::applies(2, rows.size(), database->reduction().output_width()))
      throw Refused(422, "a map needs more than two rows and columns", "serve a larger store");
    const Matrix<float> vectors = vectors_of(*database, rows);
    const size_t k = std::min(asked, rows.size() - 1);
    std::vector<int64_t> labels, voters;  // rows without a label are behind all classes
    for (const size_t row : rows) labels.push_back(opened->rows().label(row));
    for (const int64_t label : labels)
      voters.push_back(label < 0 ? int64_t(opened->rows_by_class().size()) : label);
    const auto predicted =
        leave_one_out(vectors, voters, k, database->metric(), state.drawing);
    Json row = Json::array(), label = Json::array(), right = Json::array(), names = Json::array();
    for (size_t i = 0; i < rows.size(); ++i) {
      row.push_back(rows[i]), label.push_back(labels[i]);
      right.push_back(labels[i] < 0 ? -1 : int(predicted[i] == labels[i]));
    }
    for (size_t c = 0; c < opened->rows_by_class().size(); ++c)
      names.push_back(opened->class_name(int64_t(c)));
    Matrix<float> points = principal_plane(vectors, state.drawing);
    if (layout == "neighbours")
      points = neighbour_plane(vectors, points, database->metric(), state.drawing);
    return dump({{"store", held.name()},
                 {"version", opened->version()},
                 {"features", database->reduction().features()},
                 {"layout", layout},
                 {"k", k},
                 {"rows", database->rows()},
                 {"x", numbers(points, 0)},
                 {"y", numbers(points, 1)},
                 {"row", row},
                 {"label", label},
                 {"right", right},
                 {"classes", names}});
  })};
}

namespace {

struct Judged {
  std::string features;
  std::vector<int64_t> predicted;
};

// Both features on the same rows.
struct Comparison {
  Judged before, after;
  std::vector<int64_t> targets;
  size_t k = 0;
};

const Store& whole(const Opened& opened) {
  if (opened.store()) return *opened.store();
  throw Refused(422, "an index holds one combination of features: there is nothing to compare",
                "serve the store itself", 0, "store");
}

Comparison against_others(Service::State& state, const Service::State::Snapshot& opened,
                          const std::string& before, const std::string& after, size_t limit,
                          size_t k) {
  Comparison out;
  std::vector<size_t> rows;
  for (size_t row = 0; row < opened->rows().rows(); ++row)
    if (opened->rows().label(row) >= 0) rows.push_back(row);
  if (rows.size() < 2)
    throw Refused(422, "gains need rows with labels", "extract a data set with classes", 0,
                  "store");
  std::vector<size_t> chosen;
  for (const size_t i : spread(rows.size(), limit)) chosen.push_back(rows[i]);
  for (const size_t row : chosen) out.targets.push_back(opened->rows().label(row));
  if (chosen.size() < 2) refuse("expected at least 2 rows, found a smaller limit", "limit");
  out.k = std::min(k, chosen.size() - 1);
  for (const auto& [features, to] : {std::pair(&before, &out.before), {&after, &out.after}}) {
    const auto database =
        database_of(state, opened, *features, to == &out.before ? "before" : "features");
    to->features = database->reduction().features();
    to->predicted = leave_one_out(vectors_of(*database, chosen), out.targets, out.k,
                                  database->metric(), state.drawing);
  }
  return out;
}

Comparison against_store(Service::State& state, const Service::State::Snapshot& opened,
                         const Service::State::Snapshot& tested, const std::string& before,
                         const std::string& after, size_t limit, size_t k) {
  const Store &train = whole(*opened), &test = whole(*tested);
  Comparison out;
  out.k = std::min(k, train.rows());
  try {
    const PairLabels labels = pair_labels(train, test);
    const std::vector<size_t> chosen = spread(test.rows(), limit);
    out.targets = gather(labels.test, chosen);
    for (const auto& [features, to] : {std::pair(&before, &out.before), {&after, &out.after}}) {
      to->features = features_of(train.select(*features));
      const PairRows rows = load_pair(train, test, *features, {}, state.drawing, {}, chosen);
      to->predicted =
          vote(knn(rows.train, rows.test, out.k, state.drawing), labels.train).predicted;
    }
  } catch (const Error& e) {
    throw Refused(422, e.message(), e.hint(), 0, "test");
  }
  return out;
}

}  // namespace

WebAnswer answer_gains(Service::State& state, const WebRequest& request) {
  Holding& held = state.holding(word(request, "store").value_or(""));
  const auto opened = held.now();
  const auto test = word(request, "test");
  const auto tested = test ? state.holding(*test).now() : nullptr;
  const size_t limit = number(request, "limit", 5000, 1, 20000);
  const size_t k = number(request, "k", 20, 1, 1000);
  const std::string after = features_expression(word(request, "features").value_or("")),
                    before = features_expression(
                        word(request, "before")
                            .value_or(whole(*opened).select("").front().name));
  const std::string key =
      fmt::format("gains {} {} {} {} {} {} {} {}", held.name(), opened->version(),
                  test.value_or(""), tested ? tested->version() : 0, limit, k, before, after);
  return {.body = state.remembered(key, [&] {
    const Comparison c =
        tested ? against_store(state, opened, tested, before, after, limit, k)
               : against_others(state, opened, before, after, limit, k);
    const auto was = accuracy_by_class(c.before.predicted, c.targets),
               is = accuracy_by_class(c.after.predicted, c.targets);
    const report::Change change = report::compare(c.before.predicted, c.after.predicted, c.targets);
    std::vector<Json> list;
    for (size_t i = 0; i < was.size(); ++i) {
      const double n = double(was[i].total), b = double(was[i].correct) / n,
                   a = double(is[i].correct) / n;
      list.push_back({{"class", opened->class_name(was[i].label)},
                      {"label", was[i].label},
                      {"rows", was[i].total},
                      {"before", b},
                      {"after", a},
                      {"gain", a - b}});
    }
    std::stable_sort(list.begin(), list.end(), [](const Json& x, const Json& y) {
      return x["gain"].get<double>() > y["gain"].get<double>();
    });
    const auto accuracy = [&](const Judged& judged) {
      return Json{{"features", judged.features},
                  {"accuracy", top1_accuracy(judged.predicted, c.targets)}};
    };
    return dump({{"store", held.name()},
                 {"test", test ? Json(*test) : Json()},
                 {"k", c.k},
                 {"rows", c.targets.size()},
                 {"before", accuracy(c.before)},
                 {"after", accuracy(c.after)},
                 {"gained", change.gained},
                 {"lost", change.lost},
                 {"standard_error", change.standard_error},
                 {"classes", list}});
  })};
}

}  // namespace fungi::service
