// SPDX-License-Identifier: Apache-2.0
// search: the nearest rows of pictures, texts and rows, in a store or an index.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "python/samples.h"
#include "python/watch.h"

namespace fungi::python {
namespace {

struct Query {
  std::optional<size_t> row;  // in the database
  std::string error;
  size_t answer = 0;  // its place among those that are computed, or among the rows
};

class Search {
 public:
  Search(const std::filesystem::path& target, const DatabaseOptions& options,
         const SearchOptions& search, size_t k, unsigned threads)
      : pool_(threads_or_default(threads)), search_(search) {
    database_ = open_database(target, options, pool_);
    database_->check(search);  // before a model is loaded
    k_ = std::min(k, database_->rows());
  }

  // Pictures and texts as the rows were made; those that cannot be used get their error.
  void ask(Samples& samples, ReopenOptions options) {
    const size_t first = queries_.size();
    queries_.resize(first + samples.size());
    Reopened reopened = database_->reopen(pool_, std::move(options));
    for (const std::string& note : reopened.backbone().notes())
      if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
    std::vector<StoreFailure> failures;
    samples.listen(reopened.extractor().data().seconds);
    const Samples known = samples.as_queries(database_->knows_id());
    const Matrix<float> vectors = database_->reduction().apply(
        reopened.rows(known, database_->reduction().blocks(), &failures), pool_);
    for (const StoreFailure& f : failures)
      queries_[first + f.position].error =
          fmt::format("{} ({})", worded(f.reason), worded(f.hint));
    std::vector<size_t> good;
    for (size_t i = 0; i < samples.size(); ++i)
      if (queries_[first + i].error.empty()) {
        queries_[first + i].answer = computed_.index.rows() + good.size();
        good.push_back(i);
      }
    if (!good.empty())
      append(computed_, database_->search(gather(vectors, good), k_, pool_, search_));
  }

  void ask_rows(const std::vector<std::string>& ids, const std::string& target) {
    std::vector<size_t> rows;
    for (const std::string& id : ids) {
      Query& query = queries_.emplace_back();
      query.row = database_->find(id);
      query.answer = rows.size();
      if (query.row)
        rows.push_back(*query.row);
      else
        query.error = fmt::format(
            "there is no row with this id in {}; ids are in rows-*.jsonl of the store", target);
    }
    if (!rows.empty()) of_rows_ = database_->search_rows(rows, k_, pool_, search_);
  }

  nb::dict answer() const {
    nb::list list;
    for (const Query& query : queries_) {
      nb::dict one;
      if (!query.error.empty()) {
        one["error"] = to_str(query.error);
        list.append(one);
        continue;
      }
      const Neighbours& found = query.row ? of_rows_ : computed_;
      nb::list neighbours;
      for (size_t b = 0; b < found.index.cols(); ++b) {
        const size_t row = found.index(query.answer, b);
        const int64_t label = database_->label(row);
        neighbours.append(nb::make_tuple(
            to_str(database_->id(row)), row, found.value(query.answer, b),
            label >= 0 ? nb::object(nb::int_(label)) : nb::none(),
            label >= 0 ? to_str(database_->class_name(row)) : nb::object(nb::none())));
      }
      one["neighbours"] = neighbours;
      list.append(one);
    }
    nb::dict out;
    out["queries"] = list;
    out["features"] = database_->reduction().features();
    out["metric"] = to_string(database_->metric());
    out["notes"] = worded_list(notes_);
    return out;
  }

 private:
  static void append(Neighbours& all, Neighbours more) {
    if (all.index.rows() == 0) {
      all = std::move(more);
      return;
    }
    const auto joined = [](auto& above, const auto& below) {
      std::remove_reference_t<decltype(above)> m(above.rows() + below.rows(), below.cols());
      std::copy_n(above.data(), above.rows() * above.cols(), m.data());
      std::copy_n(below.data(), below.rows() * below.cols(), m.row(above.rows()));
      above = std::move(m);
    };
    joined(all.index, more.index);
    joined(all.value, more.value);
  }

  Pool pool_;
  SearchOptions search_;
  std::unique_ptr<Database> database_;
  size_t k_ = 0;
  std::vector<Query> queries_;
  Neighbours computed_, of_rows_;
  std::vector<std::string> notes_;
};

nb::dict search_of(const std::filesystem::path& target, const std::vector<Samples*>& samples,
                   nb::list rows, size_t k, const std::filesystem::path& model,
                   std::optional<Array<float>> projection, const std::string& features,
                   const std::string& metric, const SearchOptions& options, unsigned threads) {
  DatabaseOptions how{.features = features};
  if (!metric.empty()) how.metric = parse_metric(metric);
  std::vector<std::string> ids;
  for (nb::handle id : rows) ids.push_back(from_str(id));
  const std::optional<View<const float>> matrix =
      projection ? std::optional(view_of(*projection)) : std::nullopt;
  const std::string name = target.string();
  std::optional<Search> search;
  Watch watch;
  watch.run([&] {
    search.emplace(target, how, options, k, threads);
    for (Samples* some : samples) {
      ReopenOptions reopen;
      reopen.model = model;
      if (matrix) reopen.projection_matrix = copy_of(*matrix);
      search->ask(*some, std::move(reopen));
    }
    search->ask_rows(ids, name);
  });
  return search->answer();
}

}  // namespace

void add_searches(nb::module_& m) {
  m.def("search", search_of, nb::arg("target"), nb::arg("samples"), nb::arg("rows"), nb::arg("k"),
        nb::arg("model"), nb::arg("projection").none(), nb::arg("features"), nb::arg("metric"),
        nb::arg("options"), nb::arg("threads"));
}

}  // namespace fungi::python
